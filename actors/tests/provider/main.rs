//! A provider's host against small providers that behave and misbehave: the conformance list (provider.md, annex B) and the
//! decisions behind it, with real processes. Tests are named after the case of that list they show.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod helper;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod supervision;
#[cfg(test)]
mod support;
#[cfg(test)]
mod values;
