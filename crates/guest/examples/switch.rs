//! Measures what hosting costs: cycles of the time stamp counter a round trip, and a packet at burst 32, of a
//! program that takes each packet and looks at its first byte, hosted and called directly. Medians of many rounds,
//! interleaved. `switch [ROUNDS]`.

#![allow(unsafe_code, reason = "packets cross to the guest by address")]

use std::hint::black_box;
use std::process::Command;

use millrace_dataplane::clock;
use millrace_guest::port::Packet;
use millrace_guest::{Hosted, Spec};

const BURST: usize = 32;
const TRIVIAL: &str = r#"
#include "port.h"
__attribute__((weak)) struct mr_guest_packet *millrace_receive(int *ended);
static volatile uint64_t sum;
int main(void)
{
    int ended = 0;
    while (!ended) {
        struct mr_guest_packet *packet = millrace_receive(&ended);
        if (packet)
            sum += packet->data[0];
    }
    return 0;
}
"#;

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[inline(never)]
fn direct(packets: &mut [Packet], sum: &mut u64) {
    for packet in packets {
        // SAFETY: each points into a buffer of `main`'s.
        *black_box(&mut *sum) += u64::from(unsafe { *packet.data });
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|r| r.parse().ok())
        .unwrap_or(20_000);
    let dir = std::env::temp_dir().join(format!("millrace-switch-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let (source, program) = (dir.join("trivial.c"), dir.join("trivial"));
    std::fs::write(&source, TRIVIAL)?;
    let preload = concat!(env!("CARGO_MANIFEST_DIR"), "/preload");
    let built = Command::new("cc")
        .args(["-O2", "-I", preload, "-o"])
        .args([&program, &source])
        .status()?;
    if !built.success() {
        return Err(format!("{}: cc {built}", source.display()).into());
    }
    let command = program.display().to_string();
    let mut guests = Vec::new();
    for _ in 0..8 {
        guests.push(Hosted::start(Spec::parse(&command)?)?);
    }
    std::fs::remove_dir_all(&dir)?;
    let mut buffers = vec![[1_u8; 64]; BURST];
    let packet = |b: &mut [u8; 64]| Packet {
        data: b.as_mut_ptr(),
        time: 1,
        length: 64,
        wire: 64,
        room: 64,
        port: 0,
        fate: 0,
    };
    let mut packets: Vec<Packet> = buffers.iter_mut().map(packet).collect();
    let mut sum = 0;
    let mut taken = vec![Vec::new(); 6];
    let mut measure = |place: usize, work: &mut dyn FnMut()| {
        let begin = clock::ticks();
        work();
        let ticks = clock::ticks().saturating_sub(begin);
        if let Some(list) = taken.get_mut(place) {
            list.push(ticks);
        }
    };
    for _ in 0..rounds {
        measure(5, &mut || ());
        measure(0, &mut || direct(&mut packets, &mut sum));
        // SAFETY (of all): the packets lie in `buffers`.
        measure(1, &mut || guests.iter_mut().take(1).for_each(|g| g.idle()));
        for (place, count) in [(2, 1), (3, 3), (4, 8)] {
            measure(place, &mut || {
                for guest in guests.iter_mut().take(count) {
                    // SAFETY: the packets lie in `buffers`, which nothing else touches.
                    unsafe { guest.burst(&mut packets) };
                }
            });
        }
    }
    let clock = taken.last_mut().map_or(0, |list| median(list)) as f64;
    // Each figure is without what reading the clock itself takes.
    let mut told = taken.iter_mut().map(|list| median(list) as f64 - clock);
    let mut next = || told.next().unwrap_or(0.0);
    let each = BURST as f64;
    println!(
        "direct call               {:7.1} cycles a packet",
        next() / each
    );
    println!(
        "burst of nothing          {:7.1} cycles: there and back, and the host's part",
        next()
    );
    for count in [1.0, 3.0, 8.0] {
        let ticks = next();
        println!(
            "{count} hosted                  {:7.1} cycles a packet, {:5.1} each",
            ticks / each,
            ticks / each / count
        );
    }
    black_box(sum);
    Ok(())
}
