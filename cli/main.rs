//! The `parcelo` command.
fn main() {}
