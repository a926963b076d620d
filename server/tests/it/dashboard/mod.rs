//! The dashboard over real HTTP: the content of each page, the effects and refusals of each form, and access.

mod changes;
mod forms;
mod interrupted;
mod isolation;
mod journey;
mod keyboard;
mod notices;
mod owner;
mod pages;
mod screenshots;
mod service;
mod sign_in;
