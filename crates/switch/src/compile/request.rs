//! What is asked of a compilation, and whether it fits the chain.

use millrace_synth::Synthesis;

use crate::Error;
use crate::switch::Switch;

/// A server behind the switch: it runs the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// its share of the traffic, in proportion to those of others
    pub weight: u16,
    /// the switch's ports to it, one for each device
    pub ports: Vec<u32>,
}

/// What is known of packets that come to the switch, and cannot be seen in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Assumptions {
    /// IP headers are right: version, lengths, sum
    pub headers: bool,
    /// IP headers have no options
    pub options: bool,
    /// frames have no padding, or nobody minds it
    pub padding: bool,
    /// frames have at most 1,514 bytes
    pub mtu: bool,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Request {
    /// the switch
    pub switch: Switch,
    /// its ports, one for each device
    pub ports: Vec<u32>,
    /// servers, at least one
    pub servers: Vec<Server>,
    /// what is known
    pub assume: Assumptions,
}

impl Request {
    /// Whether its ports and servers are those of a chain.
    ///
    /// # Errors
    /// Which are not.
    pub(super) fn fits(&self, of: &Synthesis) -> Result<(), Error> {
        let request = self;
        let devices = of.ports.len();
        let fits = |ports: &[u32]| ports.len() == devices;
        let help = format!("give one for each of {}", of.ports.join(", "));
        if !fits(&request.ports) {
            let what = format!(
                "{} ports of the switch for {devices} devices",
                request.ports.len()
            );
            return Err(Error::new(what, help));
        }
        if request.servers.is_empty() || request.servers.iter().any(|s| !fits(&s.ports)) {
            return Err(Error::new(
                format!("a server needs {devices} ports of the switch, as the chain has devices"),
                help,
            ));
        }
        if request.servers.iter().any(|s| s.weight == 0) {
            return Err(Error::new(
                "a server has the weight 0",
                "give it a share, or leave it out",
            ));
        }
        let servers = request.servers.iter().flat_map(|s| &s.ports);
        let mut all: Vec<u32> = request.ports.iter().chain(servers).copied().collect();
        all.sort_unstable();
        // Numbers from 0xffffff00 on are reserved (OpenFlow 1.3.5, 7.2.1).
        let twice = all.windows(2).find(|w| w.first() == w.last());
        if let Some(port) = twice.and_then(|w| w.first()) {
            return Err(Error::new(
                format!("the switch's port {port} is named twice"),
                "each device and each server's link has a port of its own",
            ));
        }
        match all.iter().find(|p| **p == 0 || **p >= 0xffff_ff00) {
            Some(port) => Err(Error::new(
                format!("{port} is no port of a switch"),
                "ports are numbers from 1 to 4294967039",
            )),
            None => Ok(()),
        }
    }
}
