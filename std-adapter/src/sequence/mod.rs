//! Sequence labelling as a user meets it: train, tag, score.
//!
//! | file | what |
//! | --- | --- |
//! | `train` | from labelled sequences to a model |
//! | `parameters` | which parameters the data asks for |
//! | `cv` | penalties by cross-validation |
//! | `tagger` | the best labelling, the N best, marginals, probabilities |
//! | `sample` | labellings drawn from the model |
//! | `scheme` | BIO and IOBES: which labels may follow each other |
//! | `chunks` | spans that BIO and IOBES labels mean, as conlleval counts them |
//! | `score` | accuracy, log loss, chunk F1 |

pub mod chunks;
pub mod cv;
mod parameters;
mod sample;
pub mod scheme;
pub mod score;
pub mod tagger;
pub mod train;
