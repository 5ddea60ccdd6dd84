//! State from outside: what entries look like to people ([`contents`], [`value`], [`literal`]), the
//! socket by which a running function is asked and told ([`socket`], [`server`], [`client`]), and maps
//! that are kept from run to run ([`pins`]).
//!
//! Nothing here touches a packet. What works on state is handed to the worker, which does it between two
//! bursts ([`millrace_dataplane::mailbox`]).

pub mod chain;
pub mod client;
pub mod contents;
pub mod elements;
pub mod exposed;
pub mod guests;
mod joined;
pub mod literal;
pub mod pins;
pub mod profile;
pub mod protocol;
pub mod reload;
pub mod rules;
pub mod saved;
pub mod server;
pub mod socket;
pub mod strict;
pub mod trace;
pub mod trouble;
pub mod value;

mod answer;
mod edit;
mod nested;
mod owner;
mod pending;
mod prefix;

pub use elements::Elements;
pub use exposed::Exposed;
pub use trouble::Trouble;
