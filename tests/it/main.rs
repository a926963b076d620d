//! Whole journeys.
