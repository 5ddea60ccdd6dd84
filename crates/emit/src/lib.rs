//! Turns a checked Program into C and the C into a shared object.
