//! The examples of Parcelo; each stands in a file of its own beside this one.
