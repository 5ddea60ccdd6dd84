//! Maps as XDP programs declare them: one file a way of declaring.

pub(crate) mod declared;
pub(crate) mod legacy;
