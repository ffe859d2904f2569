//! One tower layer that makes any number of concurrent callers behave,
//! together, as one well-mannered client of a rate-limited service.

pub mod time;
pub mod verdict;
pub mod law;
pub mod classifier;
pub mod hint;
