//! Who is out there: broadcast discovery and startup events.
