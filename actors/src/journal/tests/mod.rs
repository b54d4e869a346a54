//! The journal's promises.
mod cuts;
mod files;
mod history;
