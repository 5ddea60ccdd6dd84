//! How the packets of a device come to the workers: by the device, by what stands behind its driver, or
//! by hashing them here.

use millrace_steer::{Field, Lookup, Rss};

use super::{raw, word};
use crate::port::PortError;
use crate::port::rss::RssOptions;

/// Bytes of a key for Toeplitz over IPv6 addresses and ports.
const USUAL_KEY: u16 = 40;

/// `steer=`: who hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// the device
    Device,
    /// this process
    Software,
}

/// What is asked of a port.
pub struct Asked {
    /// its options
    pub options: RssOptions,
    /// what they mean for hashing in software
    pub rss: Result<Rss, PortError>,
    /// who is to hash, if somebody says so
    pub who: Option<Who>,
}

/// The way that packets go.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// to the only worker
    One,
    /// a queue for each worker; the device hashes these fields
    Device(Choice),
    /// a queue for each worker; what stands behind the driver shares packets out
    Driver,
    /// through queues that all workers share, hashed here
    Software(Box<Lookup>),
}

/// Fields that devices can be told to hash: `enum mr_fields` of shim.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// addresses and ports
    All = 0,
    /// both addresses
    Addresses = 1,
    /// the source's address
    Source = 2,
    /// the destination's address
    Destination = 3,
}

impl Choice {
    /// The choice that has exactly these fields; all where nothing is said.
    fn of(fields: Option<&[Field]>) -> Option<Self> {
        use Field::{DestinationAddress, SourceAddress};
        let Some(fields) = fields else {
            return Some(Self::All);
        };
        let has: Vec<_> = Field::ALL
            .into_iter()
            .filter(|f| fields.contains(f))
            .collect();
        match has.as_slice() {
            [SourceAddress] => Some(Self::Source),
            [DestinationAddress] => Some(Self::Destination),
            [SourceAddress, DestinationAddress] => Some(Self::Addresses),
            all if *all == Field::ALL => Some(Self::All),
            _ => None,
        }
    }
}

/// Whether something is asked for that is a model's, beyond a key and fields.
fn modelled(options: &RssOptions) -> bool {
    options.nic.is_some() || options.table.is_some() || options.symmetric
}

/// Whether a driver hashes packets when it is told to. net_tap describes the hash of flow rules that a user
/// of DPDK may add; its queues are filled by the kernel.
fn hashes(device: &word::Device, limits: &raw::Limits) -> bool {
    limits.hash_types != 0 && !device.is("net_tap")
}

/// Bytes of the device's key. Drivers that hash and do not say how long it is have one of the usual length.
fn key_bytes(limits: &raw::Limits) -> u16 {
    match limits.key_bytes {
        0 => USUAL_KEY,
        n => n,
    }
}

/// Which way packets go from a device to this many workers; `word` is for errors.
///
/// # Errors
/// When what is asked for cannot be.
pub fn decide(
    word: &str,
    device: &word::Device,
    asked: Asked,
    limits: &raw::Limits,
    workers: u16,
) -> Result<Way, PortError> {
    let option = |option: &str, what: String| PortError::Option {
        word: word.to_owned(),
        option: option.to_owned(),
        what,
    };
    let Asked { options, rss, who } = asked;
    let enough = limits.rx_queues.min(limits.tx_queues) >= workers;
    let choice = Choice::of(options.fields.as_deref()).filter(|choice| {
        limits
            .hashes
            .get(*choice as usize)
            .is_some_and(|can| *can != 0)
    });
    let lacking = if !hashes(device, limits) {
        Some(format!("{} does not hash packets", device.name))
    } else if !enough {
        let (rx, tx) = (limits.rx_queues, limits.tx_queues);
        Some(format!(
            "{workers} workers, and {} has {rx} receive and {tx} transmit queues",
            device.name
        ))
    } else if modelled(&options) {
        Some("`nic`, `table` and `symmetric` are for hashing in software".into())
    } else if choice.is_none() {
        Some(format!("{} cannot hash these fields", device.name))
    } else {
        None
    };
    if who == Some(Who::Device)
        && let Some(why) = lacking
    {
        return Err(option("steer", why));
    }
    if who != Some(Who::Software)
        && lacking.is_none()
        && let Some(choice) = choice
    {
        let (given, bytes) = (options.key.map(|k| k.len()), key_bytes(limits));
        return match given {
            Some(given) if given != usize::from(bytes) => Err(option(
                "key",
                format!(
                    "{} takes a key of {bytes} bytes, and this one has {given}",
                    device.name
                ),
            )),
            _ if workers == 1 => Ok(Way::One),
            _ => Ok(Way::Device(choice)),
        };
    }
    if who.is_none() && options == RssOptions::default() && enough {
        return Ok(if workers == 1 { Way::One } else { Way::Driver });
    }
    let rss = rss?;
    if workers == 1 {
        return Ok(Way::One);
    }
    if device.reads_files() && device.count("rx_pcap") > 1 {
        return Err(option(
            "rx_pcap",
            format!(
                "{} files for {workers} workers: packets of one file can be shared out, or each worker has a file",
                device.count("rx_pcap")
            ),
        ));
    }
    Ok(Way::Software(Box::new(rss.lookup())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Query;

    fn limits(queues: u16, types: u64, hashes: [u8; raw::FIELDS]) -> raw::Limits {
        raw::Limits {
            rx_queues: queues,
            tx_queues: queues,
            table_entries: 128,
            key_bytes: 40,
            hash_types: types,
            longest: 1518,
            hashes,
            driver: [0; raw::NAME],
        }
    }

    fn way(
        device: &str,
        options: &str,
        limits: &raw::Limits,
        who: Option<Who>,
    ) -> Result<Way, String> {
        let mut query = Query::parse("dpdk", &format!("{device}?{options}")).unwrap();
        let options = RssOptions::take(&mut query).unwrap();
        let asked = Asked {
            rss: options.rss(&query, 2),
            options,
            who,
        };
        let device = word::Device::parse(device).unwrap();
        decide("dpdk:x", &device, asked, limits, 2).map_err(|e| e.to_string())
    }

    #[test]
    fn the_device_hashes_where_it_can_and_else_we_do() {
        let card = limits(8, 0xff, [1, 1, 0, 0]);
        let plain = limits(8, 0, [0; 4]);
        let narrow = limits(1, 0xff, [1; 4]);
        let key = format!("key={}", "ab".repeat(40));
        let of = |device: &str, options: &str, limits| way(device, options, limits, None);
        assert_eq!(of("3b:00.0", &key, &card), Ok(Way::Device(Choice::All)));
        let addresses = "fields=destination-address+source-address";
        assert_eq!(
            of("3b:00.0", addresses, &card),
            Ok(Way::Device(Choice::Addresses))
        );
        assert_eq!(of("net_ring0", "", &plain), Ok(Way::Driver));
        assert_eq!(of("net_tap0", "", &card), Ok(Way::Driver));
        let software = |way: Result<Way, String>| matches!(way, Ok(Way::Software(_)));
        assert!(software(of("net_ring0", &key, &plain)));
        assert!(software(of("net_tap0", &key, &card)));
        assert!(software(of("3b:00.0", "", &narrow)));
        assert!(software(of("3b:00.0", "nic=e810", &card)));
        assert!(software(of(
            "3b:00.0",
            "nic=e810&fields=source-address",
            &card
        )));
        assert!(software(way("3b:00.0", "", &card, Some(Who::Software))));
    }

    #[test]
    fn what_cannot_be_says_why() {
        let card = limits(8, 0xff, [1, 1, 0, 0]);
        let plain = limits(8, 0, [0; 4]);
        for (result, why) in [
            (
                way("3b:00.0", "key=00", &card, None),
                "takes a key of 40 bytes",
            ),
            (way("3b:00.0", "nic=e1000", &card, None), "no model"),
            (
                way("net_ring0", "key=00", &plain, None),
                "takes a key of 40 bytes",
            ),
            (
                way("net_ring0", "", &plain, Some(Who::Device)),
                "does not hash",
            ),
            (
                way("3b:00.0", "symmetric", &card, Some(Who::Device)),
                "in software",
            ),
            (
                way("3b:00.0", "fields=source-address", &card, Some(Who::Device)),
                "these fields",
            ),
            (
                way("3b:00.0", "", &limits(1, 1, [1; 4]), Some(Who::Device)),
                "2 workers",
            ),
            (
                way("net_pcap0,rx_pcap=a,rx_pcap=b", "nic=generic", &plain, None),
                "2 files",
            ),
        ] {
            let text = result.unwrap_err();
            assert!(text.contains(why), "{text}");
        }
    }
}
