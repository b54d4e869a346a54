//! The vault through its handle: what it signs, that it takes up renewed files, what it refuses, and that it survives.

#[cfg(test)]
mod site;

#[cfg(test)]
mod endings;
#[cfg(test)]
mod examine;
#[cfg(test)]
mod renewal;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod work;
