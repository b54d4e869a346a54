//! Runs the site's helper, once per host.
