//! `quartermaster provider …` on the sample providers, on one that is bad in every way, and under SIGKILL; files of steps.

#[cfg(test)]
mod builtins;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod scenario;
#[cfg(test)]
mod support;
#[cfg(test)]
mod verbs;
