//! The provider protocol: values, types, schemas and frames, shown as data.

#[cfg(test)]
mod support;

#[cfg(test)]
mod attributes;
#[cfg(test)]
mod conversions;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod extensions;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod results;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod type_expressions;
