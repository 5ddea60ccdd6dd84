//! A device: found, set up and started; stopped and removed when its last queue goes.

use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use super::way::{self, Asked, Way};
use super::{eal, raw, word};
use crate::packet::MAX_BURST;
use crate::port::PortError;
use crate::port::device::SHORTEST;

/// Bytes around a buffer's room: its two headrooms, struct rte_mbuf and the pool's own header.
const AROUND: u64 = 128 + 128 + 128 + 64;
/// Buffers that wait in the rings of net_ring and the like.
const IN_RINGS: u32 = 1024;
/// Buffers that each thread may keep at hand (CACHE in shim/device.c, and half as many more).
const AT_HAND: u32 = 384;

/// What a device should be.
pub struct Plan {
    /// workers, which have a queue each
    pub workers: u16,
    /// descriptors of each ring
    pub descriptors: u16,
    /// packets a burst
    pub burst: usize,
    /// 0 for the device's own
    pub mtu: u16,
    /// of the kernel's interface behind it, if there is one
    pub interface_mtu: Option<u32>,
    /// bytes of a buffer behind its headroom
    pub room: u16,
    /// take packets to any address
    pub promiscuous: bool,
}

impl Plan {
    /// Buffers: rings full in both directions, the device's and those between workers, bursts lent and
    /// looked ahead at, what threads keep at hand, and what a software device holds.
    fn buffers(&self) -> u32 {
        let burst = self.burst.clamp(1, MAX_BURST) as u32;
        let queue = 2 * u32::from(self.descriptors) + 2 * self.between() as u32;
        // The thread that opens ports is one more.
        u32::from(self.workers) * (queue + 4 * burst + IN_RINGS + AT_HAND) + AT_HAND
    }

    /// Packets that wait between two workers, each way.
    pub fn between(&self) -> usize {
        usize::from(self.descriptors).max(2 * self.burst.clamp(1, MAX_BURST))
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        u64::from(self.buffers()) * (u64::from(self.room) + AROUND)
    }
}

/// A device that was opened.
pub struct Opened {
    /// the device
    pub device: Device,
    /// its queues in each direction
    pub queues: u16,
    /// how packets come to workers
    pub way: Way,
    /// packets that may wait between two workers
    pub between: usize,
    /// what a reader should know of it
    pub facts: Vec<String>,
}

/// Any frame.
const ANY: raw::Sizes = raw::Sizes {
    shortest: 0,
    longest: u32::MAX,
    tagged: u32::MAX,
};
/// The MTU of Ethernet.
const USUAL_MTU: u16 = 1500;

/// The frames that a device with this MTU sends.
fn sizes(mtu: u32) -> raw::Sizes {
    let header = SHORTEST as u32;
    raw::Sizes {
        shortest: header,
        longest: mtu + header,
        tagged: mtu + header + 4,
    }
}

/// Refuses a device that is given more sources than anybody reads.
fn only_these(word: &str, device: &word::Device, workers: u16) -> Result<(), PortError> {
    let qpairs = device.argument("qpairs").and_then(|q| q.parse().ok());
    let (argument, given) = if device.is("net_pcap") {
        ("rx_pcap", device.count("rx_pcap"))
    } else if device.is("net_af_packet") {
        ("qpairs", qpairs.unwrap_or(1))
    } else {
        return Ok(());
    };
    if given <= usize::from(workers) {
        return Ok(());
    }
    Err(PortError::Live {
        word: word.to_owned(),
        what: format!(
            "`{argument}` makes {given} queues, and there are {workers} workers to read them"
        ),
        help: "each queue needs a worker: use more --cores, or fewer queues".into(),
    })
}

/// A started device. Its functions may be called by any thread; a queue's by one thread at a time.
pub struct Device {
    port: u16,
    pool: *mut c_void,
    stamps: raw::Stamps,
    descriptors: u16,
    sizes: raw::Sizes,
    bytes: u64,
    pci: bool,
    ends: bool,
    word: String,
}

// SAFETY: `pool` is an address that DPDK's functions take; its pools are made for several threads
// (rte_mempool_ops "ring_mp_mc", the default), and its functions on a device by number do not depend
// on the calling thread.
unsafe impl Send for Device {}
// SAFETY: as above; nothing here changes after `open`.
unsafe impl Sync for Device {}

impl Device {
    /// Adds a device and starts it; also what a reader should know of it.
    pub fn open(
        word: &str,
        device: &word::Device,
        plan: &Plan,
        asked: Asked,
    ) -> Result<Opened, PortError> {
        let no = |what: &str, status: i32, help: &str| PortError::Live {
            word: word.to_owned(),
            what: format!("{what}: {}", eal::explained(status)),
            help: help.to_owned(),
        };
        only_these(word, device, plan.workers)?;
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let mut port = 0_u16;
        let (devargs, name) = (text(&device.devargs()), text(&device.name));
        // SAFETY: terminated strings and a place for the result, all of which outlive the call.
        let status = unsafe { raw::mr_probe(devargs.as_ptr(), name.as_ptr(), &raw mut port) };
        if status < 0 {
            let help = if device.pci {
                "`dpdk-devbind.py --status` lists the devices that drivers of DPDK may take; one of them \
                 binds it: `dpdk-devbind.py -b vfio-pci ADDRESS`"
            } else {
                "see what the driver says, and its arguments in DPDK's guide of network drivers"
            };
            return Err(no("there is no such device for DPDK", status, help));
        }
        // From here on the device exists, and goes when `found` is dropped.
        let mut found = Self {
            port,
            pool: std::ptr::null_mut(),
            stamps: raw::Stamps::default(),
            descriptors: plan.descriptors,
            sizes: ANY,
            bytes: plan.bytes(),
            pci: device.pci,
            ends: device.reads_files(),
            word: word.to_owned(),
        };
        let limits = found.limits().map_err(|status| {
            no(
                "the device does not say what it can do",
                status,
                "use another",
            )
        })?;
        let driver =
            String::from_utf8_lossy(limits.driver.split(|b| *b == 0).next().unwrap_or(&[]))
                .into_owned();
        let mut facts = vec![format!(
            "{word}: driver {driver}, {} descriptors a ring, {} MiB of buffers without huge pages",
            plan.descriptors,
            found.bytes.div_ceil(1 << 20)
        )];
        let key = asked.options.key.clone().unwrap_or_default();
        let model = asked.options.model().to_owned();
        let way = way::decide(word, device, asked, &limits, plan.workers)?;
        let queues = match &way {
            // Sockets of its own share out what comes, so that all of them must be read.
            Way::Software(_) if device.is("net_af_packet") => limits.rx_queues,
            Way::Software(_) => 1,
            _ => plan.workers,
        };
        found.start(plan, queues, &way, &key).map_err(|status| {
            no(
                "the device cannot be set up",
                status,
                "use fewer queues, a smaller ring= or another mtu=",
            )
        })?;
        // Files, rings and the like take anything.
        if device.pci || device.is("net_tap") || plan.interface_mtu.is_some() {
            found.sizes = sizes(plan.interface_mtu.unwrap_or_else(|| found.mtu().into()));
        }
        match &way {
            Way::One => (),
            Way::Device(_) => facts.push(found.spread(word, plan.workers, &limits)?),
            Way::Driver => facts.push(format!(
                "{word}: {} queues, shared out by what stands behind the driver",
                plan.workers
            )),
            Way::Software(_) => facts.push(format!(
                "{word}: RSS in software, of model {model}, from {queues} queues of the device to {} workers",
                plan.workers
            )),
        }
        if plan.promiscuous {
            // SAFETY: a number of a device.
            // A device of software that has no such mode receives everything already.
            let _ = unsafe { raw::mr_promiscuous(port) };
        }
        if found.pci && found.link(true) == Some(false) {
            return Err(PortError::Live {
                word: word.to_owned(),
                what: "the link is down".into(),
                help: "look at the cable and at the other end".into(),
            });
        }
        // SAFETY: a place for the result. Without stamps it stays as it is, which says so.
        let _ = unsafe { raw::mr_stamps(&raw mut found.stamps) };
        // What a driver says while it is set up and does work (an offload that it lacks) helps nobody.
        eal::said();
        Ok(Opened {
            between: plan.between(),
            device: found,
            queues,
            way,
            facts,
        })
    }

    fn limits(&self) -> Result<raw::Limits, i32> {
        // SAFETY: an all-zero value is valid for this structure of numbers.
        let mut limits: raw::Limits = unsafe { std::mem::zeroed() };
        // SAFETY: a place for the result.
        match unsafe { raw::mr_limits(self.port, &raw mut limits) } {
            0 => Ok(limits),
            status => Err(status),
        }
    }

    fn start(&mut self, plan: &Plan, queues: u16, way: &Way, given: &[u8]) -> Result<(), i32> {
        static POOLS: AtomicU32 = AtomicU32::new(0);
        let mut key = [0; raw::KEY];
        let (rss, fields, given) = match way {
            Way::Device(choice) => (true, *choice as u16, given),
            _ => (false, 0, &[][..]),
        };
        for (to, from) in key.iter_mut().zip(given) {
            *to = *from;
        }
        let mut setup = raw::Setup {
            rx_queues: queues,
            tx_queues: queues,
            descriptors: plan.descriptors,
            mtu: plan.mtu,
            room: plan.room,
            buffers: plan.buffers(),
            rss: rss.into(),
            fields,
            key_bytes: given.len().min(raw::KEY) as u16,
            key,
        };
        let pool = format!("millrace-{}", POOLS.fetch_add(1, Ordering::Relaxed));
        let pool = CString::new(pool).unwrap_or_default();
        // SAFETY: a structure, a terminated string and a place for the result, which outlive the call.
        let status =
            unsafe { raw::mr_start(self.port, &raw mut setup, pool.as_ptr(), &raw mut self.pool) };
        self.descriptors = setup.descriptors;
        if status == 0 { Ok(()) } else { Err(status) }
    }

    /// Writes the indirection table, entry `i` leading to queue `i mod workers`; what was done, for readers.
    fn spread(&self, word: &str, workers: u16, limits: &raw::Limits) -> Result<String, PortError> {
        let entries = limits.table_entries;
        let own = format!("{word}: RSS of the device over {workers} queues");
        if entries == 0 {
            return Ok(format!("{own}, by its own table"));
        }
        let table: Vec<u16> = (0..entries).map(|i| i % workers).collect();
        // SAFETY: as many entries as are said.
        let status = unsafe { raw::mr_table(self.port, table.as_ptr(), entries) };
        if status < 0 {
            return Err(PortError::Live {
                word: word.to_owned(),
                what: format!(
                    "the device does not take its RSS table: {}",
                    eal::explained(status)
                ),
                help: "use one core".into(),
            });
        }
        Ok(format!("{own}, by a table of {entries} entries"))
    }

    /// Its MTU; the usual one where it does not say.
    fn mtu(&self) -> u16 {
        let mut mtu = USUAL_MTU;
        // SAFETY: a place for the result, which stays as it is where there is none.
        let _ = unsafe { raw::mr_mtu(self.port, &raw mut mtu) };
        mtu
    }

    /// The frames that it sends.
    pub fn sizes(&self) -> &raw::Sizes {
        &self.sizes
    }

    /// Its number.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The pool of its buffers.
    pub fn pool(&self) -> *mut c_void {
        self.pool
    }

    /// Where buffers carry their time; nowhere but in those of a device that keeps time.
    pub fn stamps(&self) -> raw::Stamps {
        if self.ends {
            self.stamps
        } else {
            raw::Stamps::default()
        }
    }

    /// Descriptors of its rings.
    pub fn descriptors(&self) -> u16 {
        self.descriptors
    }

    /// Bytes of its buffers.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is on the PCI bus.
    pub fn pci(&self) -> bool {
        self.pci
    }

    /// Whether it receives files to their end.
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// The port's word.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Whether its link is up; none when it does not say.
    pub fn link(&self, wait: bool) -> Option<bool> {
        // SAFETY: numbers only.
        match unsafe { raw::mr_link(self.port, wait.into()) } {
            1 => Some(true),
            0 => Some(false),
            _ => None,
        }
    }

    /// Its counts.
    pub fn stats(&self) -> raw::Stats {
        let mut stats = raw::Stats::default();
        // SAFETY: a place for the result; a device that has no counts leaves it at zeros.
        let _ = unsafe { raw::mr_stats(self.port, &raw mut stats) };
        stats
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: queues hold the device, so none of them exists any more, and nobody else uses its
        // number. Buffers that another device still has keep their pool alive (`mr_free_pool`).
        unsafe {
            raw::mr_stop(self.port);
            let _ = raw::mr_remove(self.port);
            if !self.pool.is_null() {
                let _ = raw::mr_free_pool(self.pool);
            }
        }
        eal::said();
    }
}
