//! The sample helpers through the real runner, `quartermaster helper test`, and life as process 1.

#[cfg(test)]
mod init;
#[cfg(test)]
mod provided;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod support;
#[cfg(test)]
mod verb;
