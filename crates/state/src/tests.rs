use proptest::prelude::*;

use super::*;

fn content(pieces: &[Piece<'_>]) -> Content {
    let mut content = Content::default();
    content.push(&Piece::new(What::Head));
    for piece in pieces {
        content.push(piece);
    }
    content.push(&Piece::new(What::End));
    content
}

fn small() -> State {
    let entry = |place, key| Piece {
        place,
        stamp: 1_763_700_000_000_000_000,
        bound: 7,
        due: u64::MAX,
        length: 3,
        key,
        value: &[1, 2, 3],
        ..Piece::new(What::Entry)
    };
    State {
        time: 5,
        seed: 6,
        numbers: vec![u64::MAX],
        steering: vec![1, 2],
        elements: vec![Element {
            name: "nat".into(),
            timers: vec![(9, vec![1, 2])],
            objects: vec![Object {
                identity: Identity {
                    name: "flows".into(),
                    kind: "map".into(),
                    key_bytes: 2,
                    value_bytes: 3,
                    capacity: 10,
                    held: "copied".into(),
                    detail: String::new(),
                },
                parts: vec![content(&[entry(0, &[1, 1]), entry(4, &[2, 2])])],
                before: vec![(vec![1], vec![])],
            }],
        }],
    }
}

fn bytes(state: &State) -> Vec<u8> {
    let mut out = Vec::new();
    state.write(&mut out).unwrap();
    out
}

/// Reads all there is, as a run does.
fn through(bytes: &[u8]) -> Result<State, Wrong> {
    let state = State::read(bytes)?;
    for object in state.elements.iter().flat_map(|e| &e.objects) {
        for part in &object.parts {
            for piece in part.pieces(object.identity.form()) {
                piece?;
            }
        }
    }
    Ok(state)
}

#[test]
fn a_state_is_read_as_it_was_written() {
    let state = small();
    let read = through(&bytes(&state)).unwrap();
    assert_eq!(bytes(&read), bytes(&state));
    let object = &read.elements[0].objects[0];
    let form = object.identity.form();
    assert_eq!(object.parts[0].entries(form), Some(2));
    let pieces: Vec<_> = object.parts[0].pieces(form).map(Result::unwrap).collect();
    assert_eq!((pieces[2].place, pieces[2].key), (4, &[2, 2][..]));
    assert_eq!(
        (pieces[2].due, pieces[2].stamp),
        (u64::MAX, 1_763_700_000_000_000_000)
    );
}

#[test]
fn what_is_no_whole_state_of_this_version_is_refused() {
    let good = bytes(&small());
    assert_eq!(State::read(b""), Err(Wrong::Foreign));
    assert_eq!(State::read(b"millrac"), Err(Wrong::Foreign));
    for cut in 8..good.len() {
        let read = State::read(&good[..cut]);
        assert!(
            matches!(read, Err(Wrong::Length { .. } | Wrong::Version(0))),
            "{cut}: {read:?}"
        );
    }
    let more = [good.as_slice(), &[0]].concat();
    assert!(matches!(State::read(&more), Err(Wrong::Length { .. })));
    let mut other = good.clone();
    other[8] = 2;
    assert_eq!(State::read(&other), Err(Wrong::Version(2)));
    for at in 20..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        assert_eq!(State::read(&flipped), Err(Wrong::Checksum), "{at}");
    }
}

/// The same bytes with a checksum that is right, as somebody writes them who means harm.
fn sealed(body: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let front = [
        b"millrace".as_slice(),
        &VERSION.to_le_bytes(),
        &(body.len() as u64).to_le_bytes(),
    ];
    [front.concat().as_slice(), &Sha256::digest(body), body].concat()
}

#[test]
fn the_front_is_read_without_the_elements() {
    let state = small();
    let all = bytes(&state);
    let expected = Front {
        seed: 6,
        workers: 1,
        steering: vec![1, 2],
    };
    // 52 bytes stand before the body: time, seed, the worker's number of packets in 10 bytes, the steering's length.
    let short = Front::read(&all[..52 + 2 + 11 + 3], all.len() as u64);
    assert_eq!(short, Ok(expected));
    assert!(matches!(
        Front::read(&all, all.len() as u64 - 1),
        Err(Wrong::Length { .. })
    ));
    assert!(matches!(
        Front::read(&all[..60], all.len() as u64),
        Err(Wrong::Malformed(_))
    ));
}

#[test]
fn entries_come_once_and_between_head_and_end() {
    let form = Form {
        key_bytes: 0,
        value_bytes: 1,
    };
    let entry = |place| Piece {
        place,
        length: 1,
        value: &[7],
        ..Piece::new(What::Entry)
    };
    let of = |pieces: &[Piece<'_>]| {
        let mut content = Content::default();
        for piece in pieces {
            content.push(piece);
        }
        content.entries(form)
    };
    let (head, end) = (Piece::new(What::Head), Piece::new(What::End));
    assert_eq!(of(&[head, entry(1), entry(3), end]), Some(2));
    assert_eq!(of(&[head, entry(3), entry(3), end]), None);
    assert_eq!(of(&[head, entry(3), entry(1), end]), None);
    assert_eq!(of(&[head, entry(u64::MAX), entry(u64::MAX), end]), None);
    for wrong in [
        &[][..],
        &[head],
        &[end],
        &[head, head, end],
        &[head, end, end],
        &[entry(0), end],
    ] {
        assert_eq!(of(wrong), None, "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(body in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = through(&body);
        let _ = through(&sealed(&body));
        let _ = Front::read(&sealed(&body), body.len() as u64 + 52);
        let form = Form { key_bytes: 3, value_bytes: 2 };
        prop_assert!(Content::from_bytes(body.clone()).pieces(form).count() <= body.len() + 1);
    }

    #[test]
    fn a_changed_state_is_refused_or_read(at in any::<prop::sample::Index>(), byte: u8, cut in 0_usize..4) {
        let good = bytes(&small());
        let mut body = good[52..].to_vec();
        let at = at.index(body.len());
        body[at] = byte;
        body.truncate(body.len() - cut);
        if let Ok(state) = through(&sealed(&body)) {
            // What is read can be written and read again.
            prop_assert!(through(&bytes(&state)).is_ok());
        }
    }

    #[test]
    fn pieces_are_read_as_they_were_pushed(
        numbers in prop::array::uniform6(any::<u64>()),
        callback: u32,
        key in prop::array::uniform4(any::<u8>()),
        value in prop::collection::vec(any::<u8>(), 5),
    ) {
        let [place, stamp, bound, due, order, _] = numbers;
        let entry = Piece {
            what: What::Entry, callback, place, stamp, bound, due, order, length: 5, key: &key, value: &value,
        };
        let free = Piece { place, stamp, length: due, ..Piece::new(What::Free) };
        let all = content(&[entry, free]);
        let read: Vec<_> = all.pieces(Form { key_bytes: 4, value_bytes: 5 }).map(Result::unwrap).collect();
        prop_assert_eq!(&read[1..3], &[entry, free]);
    }
}
