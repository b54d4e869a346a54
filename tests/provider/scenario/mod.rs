//! `quartermaster plan`, `apply` and `undo`, on a provider of made-up things.
mod applied;
mod builtin;
mod confined;
mod interrupted;
mod killed;
mod planned;
mod sample;
mod secret;
mod site;
mod undone;
mod unknown;
