//! The log: text for people on a terminal, JSON lines for machines; nothing from the wire can forge a line.
