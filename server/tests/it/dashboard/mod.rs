//! The dashboard over real HTTP: what each page shows, what each form does and refuses, and who is
//! let in.

mod changes;
mod forms;
mod house;
mod interrupted;
mod journey;
mod notes;
mod owner;
mod pages;
mod pictures;
mod sign_in;
mod strangers;
