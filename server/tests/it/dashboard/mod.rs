//! The dashboard over real HTTP: what each page shows, what each form does and refuses, and who is
//! let in.

mod house;
mod pictures;
