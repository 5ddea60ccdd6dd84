//! By which earlier packet an entry is as it is, which packet is meant, and bad input.
