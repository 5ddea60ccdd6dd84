//! Captures: reading, writing, making, describing.
