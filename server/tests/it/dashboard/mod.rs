//! The dashboard over real HTTP: the content of each page, the effects and refusals of each form, and access.

mod changes;
mod forms;
mod interrupted;
mod journey;
mod notes;
mod owner;
mod pages;
mod pictures;
mod service;
mod sign_in;
mod strangers;
