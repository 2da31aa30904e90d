//! Model images: what is written is opened, damage is found, labels and probabilities are the model's.

mod decode;
mod field;
mod field_fixed;
mod learn;
mod open;
