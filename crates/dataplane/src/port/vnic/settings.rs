//! The options of a software NIC's word.

use millrace_steer::Rss;
use millrace_traffic::split::Split;

use super::SCHEME;
use crate::packet::{HEADROOM, SLOT, TAILROOM};
use crate::port::rss::RssOptions;
use crate::port::{PortError, Query};

/// Descriptors of a ring when nobody says anything, as DPDK's example programs have.
const DEPTH: u64 = 1024;
/// More threads than any machine has processors to spare.
const MAX_THREADS: u64 = 64;
/// One second a packet is no dispatch cost any more.
const MAX_DISPATCH: f64 = 1e9;

/// Who gets which packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Steering {
    /// by hash of its fields, as a device of this model does
    Rss(Box<Rss>),
    /// the same, with settings of its own for each port of the function that packets enter at
    Told(Vec<Rss>),
    /// queues have their turns, of [`Settings::group`] packets each
    Spray,
}

/// Packets in a row that one replica gets: between its groups it repeats the rows of others, many at once
/// (docs/measurements/replication.md).
const GROUP: u32 = 32;

/// How fast packets come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// as fast as the workers take them: a full ring is waited for, nothing is lost
    Taken,
    /// this many a second, over all queues; what finds its ring full is lost
    PerSecond(f64),
}

impl Rate {
    /// From text: `max`, or packets a second with `k` for a thousand and `M` for a million; none when
    /// it is no rate above 0 and at most ten thousand million.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "max" {
            return Some(Self::Taken);
        }
        let (digits, unit) = match text.chars().last()? {
            'k' => (text.strip_suffix('k')?, 1e3),
            'M' => (text.strip_suffix('M')?, 1e6),
            _ => (text, 1.0),
        };
        let rate = digits.parse::<f64>().ok()? * unit;
        // The upper bound keeps the arithmetic of the schedule exact to a packet.
        (rate.is_finite() && rate > 0.0 && rate <= 1e10).then_some(Self::PerSecond(rate))
    }
}

/// A software NIC as its word describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// the word, for messages
    pub word: String,
    /// the capture that it receives
    pub file: String,
    /// the model of its RSS
    pub nic: String,
    /// who gets which packet
    pub steering: Steering,
    /// packets in a row that go to one queue where they are sprayed
    pub group: u32,
    /// queues
    pub queues: u32,
    /// descriptors of each receive ring, a power of two
    pub rx_depth: u32,
    /// descriptors of each transmit ring, a power of two
    pub tx_depth: u32,
    /// how fast packets come at start
    pub rate: Rate,
    /// threads that play the device
    pub threads: usize,
    /// the processors that they are pinned to, in turn; empty: the last ones there are, if each worker and thread has one
    pub cores: Vec<usize>,
    /// ns a packet charged to the worker on top
    pub dispatch: f64,
    /// whether descriptors carry the time when the packet came
    pub stamps: bool,
    /// which packets enter at the function's second port instead of its first
    pub split: Option<Split>,
    /// whether the dispatch cost is measured at start
    pub measure: bool,
    /// a sequencer says of each packet which queue it goes to
    pub directed: bool,
    /// whether the word says nothing of who gets which packet
    pub(super) plain: bool,
}

impl Settings {
    /// Reads what stands behind `vnic:`, for this many queues.
    ///
    /// # Errors
    /// [`PortError`] when an option makes no sense or does not exist.
    pub fn parse(rest: &str, queues: u32) -> Result<Self, PortError> {
        let mut query = Query::parse(SCHEME, rest)?;
        if query.name.is_empty() {
            return Err(PortError::Nameless {
                word: query.word().to_owned(),
            });
        }
        let queues = queues.max(1);
        let options = RssOptions::take(&mut query)?;
        let steering = steering(&mut query, &options, queues)?;
        let plain = matches!(steering, Steering::Rss(_))
            && options.key.is_none()
            && options.fields.is_none()
            && options.table.is_none()
            && !options.symmetric;
        let rx_depth = depth(&mut query, "depth")?;
        let tx_depth = depth(&mut query, "txdepth")?;
        let rate = match query.text("rate") {
            None => Rate::Taken,
            Some(text) => Rate::parse(&text).ok_or_else(|| {
                query.wrong(
                    "rate",
                    "`max`, or packets a second above zero, as in 1.5M or 500k",
                )
            })?,
        };
        let threads = query.number("threads", 1, 1..=MAX_THREADS)? as usize;
        let cores = match query.text("cores") {
            None => Vec::new(),
            Some(text) => cores(&text)
                .ok_or_else(|| query.wrong("cores", "processors joined by `+`, as in 2+3"))?,
        };
        let dispatch = query.value::<f64>("dispatch", "nanoseconds a packet")?;
        let dispatch = dispatch.unwrap_or(0.0);
        if !(0.0..=MAX_DISPATCH).contains(&dispatch) {
            return Err(query.wrong("dispatch", "nanoseconds a packet, 0 or more"));
        }
        let stamps = query.switch("stamps", false)?;
        let measure = query.switch("measure", true)?;
        let split = match query.text("split") {
            None => None,
            Some(text) => Some(
                text.parse::<Split>()
                    .map_err(|e| query.wrong("split", &e.to_string()))?,
            ),
        };
        query.finish("`nic`, `steer`, `key`, `fields`, `table`, `symmetric`, `depth`, `txdepth`, `rate`, `threads`, `cores`, `dispatch`, `stamps`, `measure`, `split`")?;
        Ok(Self {
            word: query.word().to_owned(),
            file: query.name.clone(),
            nic: options.model().to_owned(),
            steering,
            group: 1,
            queues,
            rx_depth,
            tx_depth,
            rate,
            threads: threads.min(queues as usize),
            cores,
            dispatch,
            stamps,
            split,
            measure,
            directed: false,
            plain,
        })
    }

    /// Tells the device whose packets are whose: the hash and table for each port of the function.
    ///
    /// # Errors
    /// The word says who gets which packet itself.
    pub fn tell(&mut self, told: Vec<Rss>) -> Result<(), PortError> {
        if !self.plain {
            return Err(PortError::Option {
                word: self.word.clone(),
                option: "key, fields, table, symmetric, steer".into(),
                what: "the function's state decides who gets which packet: leave them out".into(),
            });
        }
        self.steering = Steering::Told(told);
        Ok(())
    }

    /// Packets are numbered, and sprayed over the queues by groups.
    ///
    /// # Errors
    /// The word says who gets which packet itself.
    pub fn sequence(&mut self) -> Result<(), PortError> {
        if !self.plain && self.steering != Steering::Spray {
            return Err(PortError::Option {
                word: self.word.clone(),
                option: "key, fields, table, symmetric".into(),
                what: "the function's state is replicated, so packets are sprayed: leave them out"
                    .into(),
            });
        }
        self.steering = Steering::Spray;
        self.group = GROUP;
        Ok(())
    }

    /// Whether the word says nothing of who gets which packet, so that a plan may.
    #[must_use]
    pub fn plain(&self) -> bool {
        self.plain
    }

    /// Bytes of a packet that fit into a buffer.
    #[must_use]
    pub fn room() -> usize {
        SLOT - HEADROOM - TAILROOM
    }

    /// What a reader of figures should know, a phrase each.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let steering = match &self.steering {
            Steering::Rss(rss) => format!(
                "RSS of model {} with a table of {} entries over {} queues",
                self.nic,
                rss.table().len(),
                self.queues
            ),
            Steering::Told(_) => format!("RSS as told, over {} queues", self.queues),
            Steering::Spray if self.directed => {
                format!(
                    "a sequencer says which of {} queues a packet goes to",
                    self.queues
                )
            }
            Steering::Spray => format!("sprayed over {} queues", self.queues),
        };
        let mut facts = vec![
            "software NIC".to_owned(),
            steering,
            format!(
                "rings of {} and {} descriptors",
                self.rx_depth, self.tx_depth
            ),
        ];
        if self.dispatch > 0.0 {
            facts.push(format!(
                "SIMULATION: {} ns a packet charged on top of the dispatch",
                self.dispatch
            ));
        }
        facts
    }
}

fn depth(query: &mut Query, key: &str) -> Result<u32, PortError> {
    let depth = query.number(key, DEPTH, 64..=1 << 15)? as u32;
    if depth.is_power_of_two() {
        Ok(depth)
    } else {
        Err(query.wrong(key, "a power of two from 64 to 32768"))
    }
}

fn steering(query: &mut Query, options: &RssOptions, queues: u32) -> Result<Steering, PortError> {
    let rss = options.rss(query, queues)?;
    match query.text("steer").as_deref() {
        None | Some("rss") => Ok(Steering::Rss(Box::new(rss))),
        Some("spray") => Ok(Steering::Spray),
        Some(_) => Err(query.wrong("steer", "`rss` or `spray`")),
    }
}

fn cores(text: &str) -> Option<Vec<usize>> {
    text.split('+')
        .map(|core| core.parse().ok().filter(|core| *core < 4096))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_word_is_the_usual_device() {
        let settings = Settings::parse("a.pcap", 4).unwrap();
        assert_eq!((settings.rx_depth, settings.queues), (1024, 4));
        assert_eq!((settings.rate, settings.threads), (Rate::Taken, 1));
        assert!(matches!(settings.steering, Steering::Rss(_)));
    }

    #[test]
    fn options_are_understood() {
        let word = "a.pcap?nic=e810&table=2048&symmetric&depth=256&rate=1.5M&threads=2&cores=1+0&dispatch=90&stamps&split=lan=10.0.0.0/8";
        let settings = Settings::parse(word, 4).unwrap();
        assert_eq!(settings.rate, Rate::PerSecond(1.5e6));
        assert_eq!((settings.rx_depth, settings.tx_depth), (256, 1024));
        assert_eq!(settings.cores, [1, 0]);
        assert!(settings.stamps && settings.split.is_some());
        assert!(
            settings
                .facts()
                .iter()
                .any(|f| f.contains("SIMULATION: 90 ns"))
        );
        assert_eq!(Rate::parse("500k"), Some(Rate::PerSecond(5e5)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for word in [
            "",
            "a?nic=e1000",
            "a?depth=1000",
            "a?depth=32",
            "a?rate=0",
            "a?rate=-1",
            "a?rate=inf",
            "a?rate=nan",
            "a?rate=",
            "a?key=00",
            "a?key=zz",
            "a?key=+1",
            "a?key=0é0é",
            "a?table=100",
            "a?table=99999999999999999999",
            "a?symmetric",
            "a?steer=left",
            "a?threads=0",
            "a?cores=x",
            "a?cores=9999999",
            "a?dispatch=-1",
            "a?dispatch=nan",
            "a?split=lan",
            "a?speed=1",
        ] {
            assert!(Settings::parse(word, 2).is_err(), "{word}");
        }
    }
}
