//! Whole journeys, and the rules of the repository.

mod tidy;
