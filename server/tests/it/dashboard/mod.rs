//! The dashboard over real HTTP: what each page shows, what each form does and refuses, and who is
//! let in.

mod forms;
mod house;
mod journey;
mod notes;
mod pages;
mod pictures;
mod sign_in;
mod strangers;
