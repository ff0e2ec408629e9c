//! Changes to documents: the examples of the standards, the rules of each
//! format, and properties against other implementations.

mod generate;
mod hostile;
mod json;
mod properties;
mod standards;
mod toml;
mod yaml;
