//! From a port's word to a device that runs.

use std::sync::Arc;

use super::device::{Device, Plan};
use super::hub::{Hub, Lines};
use super::queue::{Link, Pair};
use super::tap::Taps;
use super::way::{Asked, Way, Who};
use super::{KIND, eal, word};
use crate::packet::TAILROOM;
use crate::port::device::{Interface, Promiscuous, Watch};
use crate::port::rss::RssOptions;
use crate::port::{LiveOptions, LivePort, PortError, Query, Queue};

/// Bytes of a buffer behind its headroom, for packets of ordinary size.
const ROOM: u64 = 2048;
/// Bytes of Ethernet addresses, type and two VLAN tags.
const ETHERNET: u64 = 22;
/// The largest MTU: the packet, its headers and rooms fit into a buffer, which has 16-bit lengths.
const MOST_MTU: u64 = 60_000;
/// What net_af_packet puts before a packet in a frame of its ring: TPACKET2_HDRLEN and alignment, at most.
const AF_PACKET: u64 = 128;
/// The most bytes of a buffer: with its headroom they are counted in 16 bits.
const MOST_ROOM: u64 = 65_000;
/// Bytes of a page, or a multiple.
const PAGE: u64 = 4096;
/// Frames in each ring of net_af_packet when nobody says anything.
const AF_PACKET_FRAMES: u64 = 512;

pub fn open(rest: &str, options: &LiveOptions) -> Result<LivePort, PortError> {
    let mut query = Query::parse(KIND.scheme, rest)?;
    let ring = query.number("ring", 512, 32..=8192)? as u16;
    let mtu = query.number("mtu", 0, 0..=MOST_MTU)?;
    let rss = RssOptions::take(&mut query)?;
    let who = match query.text("steer").as_deref() {
        None => None,
        Some("device") => Some(Who::Device),
        Some("software") => Some(Who::Software),
        Some(_) => return Err(query.wrong("steer", "`device` or `software`")),
    };
    let checksum = match query.text("checksum").as_deref() {
        None => None,
        Some("" | "on") => Some(true),
        Some("off") => Some(false),
        Some(_) => return Err(query.wrong("checksum", "`on` or `off`")),
    };
    let promiscuous = query.switch("promisc", true)?;
    query.finish("ring, mtu, steer, nic, key, fields, table, symmetric, checksum and promisc")?;
    let name = query.word().to_owned();
    let live = |what: String, help: &str| PortError::Live {
        word: name.clone(),
        what,
        help: help.into(),
    };
    let mut device = word::Device::parse(&query.name)
        .map_err(|what| live(what, "docs/ports.md says how devices are named"))?;

    // Only the drivers that use an interface of the kernel; net_tap makes its own.
    let uses_interface = device.is("net_af_packet") || device.is("net_pcap");
    let interface = match device.interface().filter(|_| uses_interface) {
        Some(interface) => Some((interface.to_owned(), Interface::find(&name, interface)?)),
        None => None,
    };
    // By a membership of this process, which ends with it: the driver would set a flag that stays after a
    // kill.
    let member = match &interface {
        Some((_, interface)) if promiscuous => Some(Promiscuous::enter(&name, interface)?),
        _ => None,
    };
    let workers = options.queues.max(1);
    let mut room = ROOM.max(mtu + ETHERNET + TAILROOM as u64);
    if device.is("net_af_packet") {
        let frame = ring_of_the_kernel(&name, &mut device, interface.as_ref(), mtu)?;
        device.default("qpairs", &workers.to_string());
        // The driver wants a buffer to hold a frame of its ring, whatever is in it.
        room = room.max(frame + TAILROOM as u64).min(MOST_ROOM);
    }
    let plan = Plan {
        workers: workers as u16,
        descriptors: ring,
        burst: options.burst,
        mtu: mtu as u16,
        interface_mtu: interface.as_ref().map(|(_, i)| match mtu {
            0 => i.mtu,
            set => set as u32,
        }),
        room: room as u16,
        promiscuous: promiscuous && interface.is_none(),
    };
    eal::start(plan.bytes()).map_err(|what| live(what, "use another kind of port"))?;
    let asked = Asked {
        rss: rss.rss(&query, workers),
        options: rss,
        who,
    };
    let before = Taps::now();
    let opened = Device::open(&name, &device, &plan, asked)?;
    let taps = Taps::now().since(&before);
    let is_tap = device.is("net_tap");
    let device = Arc::new(opened.device);
    let mut ways = match opened.way {
        Way::Software(lookup) => {
            let lines = Lines {
                queues: opened.queues,
                workers: plan.workers,
                between: opened.between,
            };
            Hub::open(device.clone(), *lookup, &lines)
                .into_iter()
                .map(Some)
                .collect()
        }
        _ => Vec::new(),
    };
    ways.resize_with(usize::from(plan.workers), || None);
    let queues = (0..plan.workers)
        .zip(ways)
        .map(|(number, share)| -> Box<dyn Queue> {
            let link = match &interface {
                Some((interface, _)) => Link::Kernel(Watch::new(&name, interface)),
                None if is_tap => Link::Tap(taps.clone()),
                None if device.pci() && number == 0 => Link::Card,
                None => Link::None,
            };
            let checksums = checksum.unwrap_or(interface.is_some());
            Box::new(Pair::new(
                device.clone(),
                number,
                share,
                link,
                checksums,
                options,
            ))
        });
    Ok(LivePort {
        queues: queues.collect(),
        hold: Some(Box::new((device.clone(), member))),
        told: false,
        table: None,
        facts: opened.facts,
    })
}

/// Sizes of net_af_packet's ring for an interface's packets; bytes of one of its frames.
fn ring_of_the_kernel(
    word: &str,
    device: &mut word::Device,
    interface: Option<&(String, Interface)>,
    mtu: u64,
) -> Result<u64, PortError> {
    let longest = interface.map_or(mtu, |(_, i)| mtu.max(i.mtu.into()));
    if longest > MOST_MTU {
        let interface = interface.map_or("", |(interface, _)| interface);
        return Err(PortError::Live {
            word: word.to_owned(),
            what: format!("the MTU of {interface} is {longest}, and a buffer holds {MOST_MTU}"),
            help: format!("`ip link set {interface} mtu {MOST_MTU}`, or use afpacket:{interface}"),
        });
    }
    // Blocks of the ring are whole pages.
    let frame = match longest + ETHERNET + AF_PACKET {
        ..=ROOM => ROOM,
        bytes => bytes.next_multiple_of(PAGE),
    };
    device.default("framesz", &frame.to_string());
    device.default("blocksz", &frame.max(PAGE).to_string());
    device.default("framecnt", &AF_PACKET_FRAMES.to_string());
    Ok(frame)
}
