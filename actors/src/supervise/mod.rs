//! How actors are owned, restarted and watched.
