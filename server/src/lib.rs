//! Parcelo server.
