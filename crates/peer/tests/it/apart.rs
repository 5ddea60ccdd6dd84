//! Machines of another version, and those whose clocks are apart.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use millrace_cluster::Peers;
use millrace_dataplane::clock;
use millrace_peer::Security;

use super::hostile::{PRINT, hands, node, secret, what, y};

const HELLO: u8 = 1;
const OFFER: u8 = 2;
const GO: u8 = 3;
const NO: u8 = 7;
const SECOND: i64 = 1_000_000_000;

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32 + 1).to_be_bytes();
    [&length[..], &[kind], content].concat()
}

fn heard(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let mut content = vec![0; length as usize - 1];
    stream.read_exact(&mut content).unwrap();
    (head[4], content)
}

#[test]
fn a_receiver_of_another_version_is_offered_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let hello = [&b"MR-PEER0"[..], &PRINT, &[5; 32]].concat();
        stream.write_all(&frame(HELLO, &hello)).unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        said
    });
    let x = hands(1, "x", &Security::Plain);
    let refused = x.hand(&node("y", at), &what(1, 300)).unwrap_err();
    assert!(refused.why.contains("no frame"), "{refused}");
    drop(x);
    assert!(other.join().unwrap().is_empty());
}

/// What y says to an offer of a bucket, of this much from now.
fn offered(to: std::net::SocketAddr, ahead: i64) -> (u8, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let (kind, hello) = heard(&mut stream);
    assert_eq!(kind, HELLO);
    let challenge = &hello[8 + 32..];
    let mut offer = Vec::new();
    for name in ["x", "y"] {
        offer.extend(1_u16.to_be_bytes());
        offer.extend(name.as_bytes());
    }
    offer.extend(PRINT);
    offer.extend(1_u32.to_be_bytes());
    let time = clock::now().wrapping_add_signed(ahead);
    for number in [2, time, 0] {
        offer.extend(number.to_be_bytes());
    }
    offer.extend([0; 32]);
    offer.extend([9; 32]);
    let tag = secret(1).tag(&[b"offer", challenge, &offer]);
    offer.extend(tag);
    stream.write_all(&frame(OFFER, &offer)).unwrap();
    let (kind, why) = heard(&mut stream);
    (kind, String::from_utf8(why).unwrap())
}

#[test]
fn a_machine_whose_clock_is_apart_hands_nothing_over() {
    let y = y(&Security::Plain);
    assert_eq!(offered(y.at, 0).0, GO);
    for ahead in [-2 * SECOND, 2 * SECOND, -86_400 * SECOND] {
        let (kind, why) = offered(y.at, ahead);
        assert_eq!(kind, NO);
        assert!(
            why.contains("s apart: have them set by NTP or PTP"),
            "{why}"
        );
    }
}
