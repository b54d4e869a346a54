//! Keys, tokens, chains of trust and certificate requests, shown on recorded bytes, published vectors and attacks.

#[cfg(test)]
mod recorded;

#[cfg(test)]
mod chain;
#[cfg(test)]
mod csr;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tokens;
