//! The device in a port's word: an address on the PCI bus, or a driver of software with arguments.

/// The network drivers of software begin with this.
const SOFTWARE: &str = "net_";
/// More arguments than any driver takes.
const MAX_ARGUMENTS: usize = 128;

/// A device as it is named to DPDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// `net_ring0`, or `0000:3b:00.0`
    pub name: String,
    /// what its driver is told
    arguments: Vec<(String, String)>,
    /// whether it is on the PCI bus
    pub pci: bool,
}

impl Device {
    /// Reads `NAME` or `NAME,argument=value,…`.
    ///
    /// # Errors
    /// What it should look like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let pci = pci(name);
        let software = name.starts_with(SOFTWARE)
            && name.len() < 64
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if pci.is_none() && !software {
            return Err(format!(
                "`{name}` is neither an address on the PCI bus, as in 0000:3b:00.0, nor a driver of \
                 software with a number, as in net_ring0"
            ));
        }
        let mut arguments = Vec::new();
        for part in parts {
            let Some((key, value)) = part.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Err(format!("`{part}`: an argument of the driver is NAME=VALUE"));
            };
            arguments.push((key.to_owned(), value.to_owned()));
        }
        if arguments.len() > MAX_ARGUMENTS || text.contains('\0') {
            return Err("too many arguments".into());
        }
        Ok(Self {
            pci: pci.is_some(),
            name: pci.unwrap_or_else(|| name.to_owned()),
            arguments,
        })
    }

    /// Whether it is of this driver, as in `net_pcap`.
    #[must_use]
    pub fn is(&self, driver: &str) -> bool {
        self.name
            .strip_prefix(driver)
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    }

    /// How often an argument is given.
    #[must_use]
    pub fn count(&self, key: &str) -> usize {
        self.arguments.iter().filter(|(k, _)| k == key).count()
    }

    /// The first value of an argument.
    #[must_use]
    pub fn argument(&self, key: &str) -> Option<&str> {
        let found = self.arguments.iter().find(|(k, _)| k == key)?;
        Some(&found.1)
    }

    /// Adds an argument, unless it is given.
    pub fn default(&mut self, key: &str, value: &str) {
        if self.argument(key).is_none() {
            self.arguments.push((key.to_owned(), value.to_owned()));
        }
    }

    /// The interface of the kernel that it receives from, where it says so.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        ["iface", "rx_iface", "rx_iface_in"]
            .iter()
            .find_map(|key| self.argument(key))
    }

    /// Whether it receives files to their end.
    #[must_use]
    pub fn reads_files(&self) -> bool {
        let endless = self.argument("infinite_rx").is_some_and(|v| v != "0");
        self.is("net_pcap") && self.count("rx_pcap") > 0 && !endless
    }

    /// As DPDK wants it.
    #[must_use]
    pub fn devargs(&self) -> String {
        let mut text = self.name.clone();
        for (key, value) in &self.arguments {
            text.push_str(&format!(",{key}={value}"));
        }
        text
    }
}

/// The whole address of a device on the PCI bus, from one that may leave its domain out.
fn pci(text: &str) -> Option<String> {
    let (slot, function) = text.rsplit_once('.')?;
    let hex =
        |t: &str, digits: usize| t.len() == digits && t.bytes().all(|b| b.is_ascii_hexdigit());
    let fields: Vec<_> = slot.split(':').collect();
    let (domain, bus, device) = match fields.as_slice() {
        [bus, device] => ("0000", *bus, *device),
        [domain, bus, device] => (*domain, *bus, *device),
        _ => return None,
    };
    let right = hex(domain, 4) && hex(bus, 2) && hex(device, 2);
    (right && matches!(function.as_bytes(), [b'0'..=b'7']))
        .then(|| format!("{domain}:{bus}:{device}.{function}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_both_kinds_are_told_apart() {
        let card = Device::parse("3B:00.0").unwrap();
        assert_eq!((card.name.as_str(), card.pci), ("0000:3b:00.0", true));
        let file = Device::parse("net_pcap0,rx_pcap=a.pcap,rx_pcap=b.pcap,tx_pcap=c=d").unwrap();
        assert!(!file.pci && file.is("net_pcap") && !file.is("net_pc") && file.reads_files());
        assert_eq!(
            (file.count("rx_pcap"), file.argument("tx_pcap")),
            (2, Some("c=d"))
        );
        assert_eq!(
            file.devargs(),
            "net_pcap0,rx_pcap=a.pcap,rx_pcap=b.pcap,tx_pcap=c=d"
        );
        let mut live = Device::parse("net_af_packet1,iface=veth0").unwrap();
        live.default("qpairs", "2");
        live.default("iface", "x");
        assert_eq!(live.interface(), Some("veth0"));
        assert_eq!(live.devargs(), "net_af_packet1,iface=veth0,qpairs=2");
        let endless = Device::parse("net_pcap0,rx_pcap=a,infinite_rx=1").unwrap();
        assert!(!endless.reads_files());
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "eth0",
            "net_ring0 x",
            "3b:00",
            "3b:00.8",
            "3b:00.00",
            "+b:00.0",
            "00000:3b:00.0",
            "net_pcap0,rx_pcap",
            "net_pcap0,=a",
            "net_pcap0,rx_pcap=\0",
        ] {
            assert!(Device::parse(text).is_err(), "{text}");
        }
    }
}
