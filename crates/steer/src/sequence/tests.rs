//! Steps, carriers and the ring, against a plain list of all rows.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::ring::{End, Most, Next, Ring, Taken};
use super::*;

/// A frame is its own row: its first byte says whether it touches state, the others are the row.
fn rows(shape: Shape) -> impl Extract + Clone {
    let take = |frame: &[u8], _: u16, _: u64, row: &mut [u8]| {
        let content = frame.get(1..).unwrap_or(&[]);
        row.iter_mut().zip(content).for_each(|(r, b)| *r = *b);
        frame.first() != Some(&0)
    };
    (shape, take)
}

fn form(cores: u16, slots: usize, row: usize, time: Option<usize>) -> Form {
    Form::new(cores, slots, Shape::new(row, time).unwrap()).unwrap()
}

/// A packet of the sequencer's, as it was given to a core.
struct Sent {
    core: u16,
    bytes: Vec<u8>,
    header: Header,
}

/// What a sequencer makes of `packets` drawn packets: all carriers, and all rows.
fn sequence(form: &Form, state: State, packets: usize, seed: u64) -> (Vec<Sent>, Vec<Row>, State) {
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let mut sequencer = Sequencer::new(state, rows(form.shape()));
    let mut prefix = Prefix::new(form.clone());
    let (mut sent, mut all, mut time) = (Vec::new(), Vec::new(), 1_u64 << 41);
    let mut buffer = Vec::new();
    for _ in 0..packets {
        let step = match draw.random_range(0..20) {
            0 => draw.random_range(0..1 << 40),
            _ => draw.random_range(0..5000),
        };
        time = (time + step).saturating_sub(if draw.random_range(0..9) == 0 { 400 } else { 0 });
        let mut frame = vec![0; draw.random_range(0..90)];
        draw.fill(&mut frame[..]);
        if let Some(first) = frame.first_mut() {
            *first = u8::from(draw.random_range(0..4) > 0);
        }
        let port = draw.random_range(0..3);
        let mut give = |header: Header, row: Option<Row>| {
            if let Some(row) = row {
                prefix.push(&row);
                all.push(row);
            }
            prefix.write(&header, &frame, &mut buffer, |core, bytes| {
                sent.push(Sent {
                    core,
                    bytes: bytes.to_vec(),
                    header,
                });
            });
        };
        match sequencer.packet(&frame, port, time, &mut give) {
            Ok(()) => {}
            Err(error) => panic!("{error}"),
        }
    }
    (sent, all, sequencer.state().clone())
}

#[test]
fn numbers() {
    let form = form(3, 3, 8, Some(1));
    let rows = rows(form.shape());
    let mut state = State::new(3, 1000).unwrap();
    let mut take = |frame: &[u8], time: u64| {
        let arrival = Arrival::Packet { frame, port: 7 };
        step(&mut state, &rows, arrival, time).unwrap()
    };
    // Before the first row there is nothing to wait for, and no heartbeat.
    let (plain, none) = take(&[0, 1], 5000);
    assert_eq!(none, None);
    assert_eq!(
        (plain.sequence, plain.core, plain.kind),
        (0, Core::One(0), Kind::Plain)
    );
    let (touch, row) = take(&[1, 0xaa, 2, 3, 4, 5, 6, 7, 8, 9], 1 << 40 | 0x12_3456_789a);
    assert_eq!(
        (touch.sequence, touch.core, touch.port),
        (1, Core::One(1), 7)
    );
    let row = row.unwrap();
    assert_eq!(row.bytes(), [0xaa, 0x12, 0x34, 0x56, 0x78, 0x9a, 7, 8]);
    assert_eq!((row.number, row.time, row.beat), (1, touch.stamp, false));
    // A packet without a row has the number of the last one; a clock that goes back does not take the stamp with it.
    let (plain, _) = take(&[0], 17);
    assert_eq!(
        (plain.sequence, plain.stamp, plain.core),
        (1, touch.stamp, Core::One(2))
    );
    assert_eq!(state.back(), 1);
    assert_eq!(state.due(), Some(touch.stamp + 1000));
    // A heartbeat that is due comes before the packet.
    let late = Arrival::Packet {
        frame: &[1],
        port: 0,
    };
    let before = state.clone();
    let due = step(&mut state, &rows, late, touch.stamp + 1000).unwrap_err();
    assert_eq!(due, StepError::Due(touch.stamp + 1000));
    assert_eq!(state, before);
    let (beat, row) = step(&mut state, &rows, Arrival::Idle, touch.stamp + 1000).unwrap();
    assert_eq!(
        (beat.sequence, beat.core, beat.kind),
        (2, Core::All, Kind::Beat)
    );
    assert!(row.unwrap().beat);
    let (next, _) = step(&mut state, &rows, late, touch.stamp + 1001).unwrap();
    assert_eq!((next.sequence, next.core), (3, Core::One(0)));
}

#[test]
fn gaps() {
    let shape = Shape::new(8, Some(0)).unwrap();
    let mut sequencer = Sequencer::new(State::new(2, 100).unwrap(), rows(shape));
    let mut kinds = Vec::new();
    let mut packet = |time| {
        kinds.clear();
        let done = sequencer.packet(&[1], 0, time, |header, _| {
            kinds.push((header.kind, header.stamp));
        });
        done.map(|()| kinds.clone())
    };
    assert_eq!(packet(1000), Ok(vec![(Kind::Touch, 1000)]));
    assert_eq!(
        packet(1250),
        Ok(vec![
            (Kind::Beat, 1100),
            (Kind::Beat, 1200),
            (Kind::Touch, 1250)
        ])
    );
    let gap = packet(u64::MAX).unwrap_err();
    assert!(gap.to_string().contains("check the time stamps"), "{gap}");
    // The last moment that there is.
    let state = State::new(2, 100).unwrap().after(5, u64::MAX - 150);
    let mut sequencer = Sequencer::new(state, rows(shape));
    let mut count = 0;
    let done = sequencer.packet(&[1], 0, u64::MAX, |_, _| count += 1);
    assert_eq!((done, count), (Ok(()), 2));
    assert_eq!(sequencer.beat(u64::MAX), Ok(None));
}

#[test]
fn last_number() {
    let form = form(2, 2, 4, None);
    let rows = rows(form.shape());
    let mut state = State::new(2, MAX_GAP).unwrap().after(LAST - 2, 7);
    let mut prefix = Prefix::new(form.clone());
    let touch = Arrival::Packet {
        frame: &[1, 2],
        port: 0,
    };
    for number in [LAST - 1, LAST] {
        let (header, row) = step(&mut state, &rows, touch, 8).unwrap();
        assert_eq!(header.sequence, number);
        prefix.push(&row.unwrap());
        prefix.write(&header, &[1, 2], &mut Vec::new(), |_, bytes| {
            let carrier = Carrier::new_checked(bytes, &form).unwrap();
            assert_eq!(carrier.rows().last().unwrap().number, number);
        });
    }
    assert_eq!(step(&mut state, &rows, touch, 9), Err(StepError::Exhausted));
    assert_eq!(
        step(&mut state, &rows, Arrival::Idle, 9),
        Err(StepError::Exhausted)
    );
    let plain = Arrival::Packet {
        frame: &[0],
        port: 0,
    };
    assert_eq!(step(&mut state, &rows, plain, 9).unwrap().0.sequence, LAST);
}

/// Packets that are numbered together have the numbers that they have one by one, and leave what these leave.
fn at_once(state: &State, touches: &[bool], time: u64) -> (State, Result<Vec<u64>, StepError>) {
    let mut state = state.clone();
    let rows = touches.iter().filter(|touch| **touch).count();
    let first = together(&mut state, (touches.len() as u64, rows as u64), time);
    let numbers = first.map(|mut last| {
        let numbers = touches.iter().map(|touch| {
            last += u64::from(*touch);
            last
        });
        numbers.collect()
    });
    (state, numbers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn together_is_one_by_one(
        cores in 1_u16..9,
        before in 0_u64..50,
        batches in proptest::collection::vec((proptest::collection::vec(any::<bool>(), 0..9), 0_u64..900), 1..8),
    ) {
        let rows = rows(Shape::new(8, None).unwrap());
        let mut state = State::new(cores, 1000).unwrap().after(before, 400);
        for (touches, time) in batches {
            let (then, numbers) = at_once(&state, &touches, time);
            let numbers = numbers.unwrap();
            for (touch, number) in touches.iter().zip(numbers) {
                let arrival = Arrival::Packet { frame: &[u8::from(*touch), 1, 2], port: 0 };
                let (header, _) = step(&mut state, &rows, arrival, time).unwrap();
                prop_assert_eq!((header.sequence, header.kind == Kind::Touch), (number, *touch));
            }
            prop_assert_eq!(&then, &state);
        }
    }
}

#[test]
fn together_ends_where_steps_do() {
    let state = State::new(2, 100).unwrap().after(LAST - 2, 500);
    assert_eq!(at_once(&state, &[true], 600).1, Err(StepError::Due(600)));
    assert_eq!(at_once(&state, &[], 600), (state.clone(), Ok(vec![])));
    assert_eq!(
        at_once(&state, &[true, false, true], 599).1,
        Ok(vec![LAST - 1, LAST - 1, LAST])
    );
    let (then, none) = at_once(&state, &[true; 3], 599);
    assert_eq!((then, none), (state, Err(StepError::Exhausted)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every carrier holds the last rows, with their whole times, and the packet.
    #[test]
    fn carriers(cores in 1_u16..9, more in 0_usize..20, row in 5_usize..40, timed: bool, keyed: bool, seed: u64) {
        let mut form = form(cores, usize::from(cores) + more, row, timed.then_some((row - 5) / 2));
        if keyed {
            form = form.with_key(Key(seed.to_le_bytes().repeat(2).try_into().unwrap()));
        }
        let (sent, rows, state) = sequence(&form, State::new(cores, 1 << 37).unwrap(), 120, seed);
        // Hardly any sequence is without one of both.
        prop_assume!(rows.iter().any(|r| r.beat) && rows.iter().any(|r| !r.beat));
        prop_assert_eq!(state.sequence(), rows.len() as u64);
        for one in &sent {
            let carrier = Carrier::new_checked(&one.bytes, &form).unwrap();
            prop_assert_eq!(carrier.header(), one.header);
            prop_assert_eq!(carrier.core(), one.core);
            let newest = one.header.sequence as usize;
            let expected = rows.get(newest.saturating_sub(form.slots())..newest).unwrap();
            let expected: Vec<Row> = expected.iter().map(|r| { let mut r = *r; r.time *= u64::from(timed); r }).collect();
            prop_assert_eq!(carrier.rows().collect::<Vec<_>>(), expected);
            prop_assert_eq!(carrier.packet().len() + form.prefix_bytes(), one.bytes.len());
            let whole = form.prefix_bytes();
            for short in [0, 13, 14, FIXED_BYTES, whole - 1] {
                prop_assert_eq!(Carrier::new_checked(&one.bytes[..short], &form).unwrap_err(), Refusal::Short);
            }
        }
    }

    /// A core that loses as many packets in succession as the form says finds all rows that it has not seen in its next one.
    #[test]
    fn losses(cores in 1_u16..9, heals in 0_usize..4, seed: u64) {
        let form = form(cores, usize::from(cores) * (heals + 1), 6, None);
        prop_assert_eq!(form.healed(), heals);
        let (sent, _, _) = sequence(&form, State::new(cores, MAX_GAP).unwrap(), 200, seed);
        for core in 0..cores {
            let mine: Vec<_> = sent.iter().filter(|s| s.core == core).collect();
            for pair in mine.windows(heals + 2) {
                let (first, last) = (pair.first().unwrap(), pair.last().unwrap());
                let carrier = Carrier::new_checked(&last.bytes, &form).unwrap();
                prop_assert!(carrier.oldest() <= first.header.sequence + 1);
            }
        }
    }

    /// Anything may come: what is taken has the form's lengths.
    #[test]
    fn noise(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..120, change: u8, seed in 0_u64..50) {
        let form = form(2, 5, 7, Some(2));
        let _ = Carrier::new_checked(&bytes, &form);
        let (mut sent, _, _) = sequence(&form, State::new(2, MAX_GAP).unwrap(), 12, seed);
        let mut last = sent.pop().unwrap().bytes;
        if let Some(byte) = last.get_mut(at) {
            *byte ^= change;
        }
        if let Ok(carrier) = Carrier::new_checked(&last, &form) {
            prop_assert_eq!(carrier.rows().count(), carrier.held());
            prop_assert!(carrier.rows().all(|row| row.bytes().len() == 7 && row.time <= carrier.stamp()));
        }
    }
}

const FIXED_BYTES: usize = prefix::FIXED;

#[test]
fn refusals() {
    let plain = form(2, 5, 7, Some(2));
    let (sent, _, _) = sequence(&plain, State::new(2, MAX_GAP).unwrap(), 40, 3);
    let touch = sent.iter().rfind(|s| s.header.kind == Kind::Touch).unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = touch.bytes.clone();
        bytes[at] = value;
        Carrier::new_checked(&bytes, &plain).err()
    };
    let own = (touch.header.sequence as usize - 1) % 5;
    let all = [
        (12, 8, Refusal::Foreign),
        (14, 0x21, Refusal::Foreign),
        (15, 6, Refusal::Shaped),
        (16, 8, Refusal::Shaped),
        (14, 0x13, Refusal::Flags),
        (14, 0x18, Refusal::Flags),
        (14, 0x12, Refusal::Flags),
        (17, 9, Refusal::Index),
        (34, 0xe0, Refusal::Slot),
        (34, 1 << own, Refusal::Flags),
        (33, !touch.bytes[33], Refusal::Times),
    ];
    for (at, value, refusal) in all {
        assert_eq!(with(at, value), Some(refusal), "byte {at}: {value:#x}");
    }
    let mut behind = touch.bytes.clone();
    behind[18..26].fill(0xff);
    assert_eq!(
        Carrier::new_checked(&behind, &plain).err(),
        Some(Refusal::Number)
    );
    let early = sent.iter().find(|s| s.header.sequence == 2).unwrap();
    let mut early = early.bytes.clone();
    early[FIXED_BYTES + 1 + 4 * 7] = 1;
    assert_eq!(
        Carrier::new_checked(&early, &plain).err(),
        Some(Refusal::Slot)
    );
    // With a key nothing but what the sequencer wrote is taken, up to the packet.
    let keyed = plain.clone().with_key(Key(*b"sixteen bytes ok"));
    let (sent, _, _) = sequence(&keyed, State::new(2, MAX_GAP).unwrap(), 40, 3);
    let last = &sent.last().unwrap().bytes;
    for at in 0..keyed.prefix_bytes() {
        let mut bytes = last.clone();
        bytes[at] ^= 16;
        assert!(Carrier::new_checked(&bytes, &keyed).is_err(), "byte {at}");
    }
    let other = plain.with_key(Key(*b"sixteen bytes no"));
    assert_eq!(
        Carrier::new_checked(last, &other).err(),
        Some(Refusal::Forged)
    );
    assert_eq!(format!("{other:?}").matches("sixteen").count(), 0);
}

#[test]
fn forms() {
    let shape = |bytes, time| Shape::new(bytes, time);
    assert_eq!(shape(0, None), Err(FormError::Row(0)));
    assert_eq!(shape(65, None), Err(FormError::Row(65)));
    assert!(shape(5, Some(0)).is_ok() && shape(5, Some(1)).is_err());
    assert!(shape(5, Some(usize::MAX)).is_err());
    let row = shape(4, None).unwrap();
    assert_eq!(Form::new(0, 4, row), Err(FormError::Cores(0)));
    assert_eq!(Form::new(4, 65, row), Err(FormError::Slots(65)));
    let few = Form::new(8, 7, row).unwrap_err().to_string();
    assert!(few.contains("at least 8 rows"), "{few}");
    assert!(Form::new(64, 64, row).is_ok());
    assert_eq!(State::new(3, 0), Err(FormError::Period(0)));
    assert_eq!(
        State::new(3, MAX_GAP + 1),
        Err(FormError::Period(MAX_GAP + 1))
    );
    // The headroom of XDP: conntrack, tokenbucket, heavyhitter, portknock, ddos.
    let within = |bytes| Form::slots_within(216, shape(bytes, None).unwrap(), false);
    assert_eq!([30, 18, 15, 6, 4].map(within), [6, 10, 12, 29, 44]);
    assert_eq!(Form::slots_within(30, row, false), 0);
}

/// Readers at their own pace see each row once and whole, or are told that they are too late.
#[test]
fn ring() {
    let shape = Shape::new(13, None).unwrap();
    let ring = Ring::new(32, shape);
    assert_eq!((ring.places(), ring.place_bytes()), (32, 32));
    let row_of = |number: u64| {
        let mut row = Row::empty(shape, number, number * 3, number.is_multiple_of(7));
        row.bytes_mut().fill(number as u8);
        row
    };
    std::thread::scope(|threads| {
        let reader = || {
            let mut applied = 0;
            while applied < 4000 {
                match ring.next(&mut applied, ring.head()) {
                    Next::Given(row) => assert_eq!(row, row_of(applied)),
                    Next::Done => std::thread::yield_now(),
                    Next::Overrun => return applied,
                    Next::Ahead => panic!("a row that is there is not ahead"),
                }
            }
            applied
        };
        let readers = [threads.spawn(reader), threads.spawn(reader)];
        for number in 1..=4000 {
            ring.put(&row_of(number));
            if number % 4 == 0 {
                ring.publish(number);
                std::thread::yield_now();
            }
        }
        for reader in readers {
            assert!(reader.join().unwrap() <= 4000);
        }
    });
    // Each line once: two places a line where the ring begins with a line, else one more.
    let lines = |first, last| ring.lines(first, last).count();
    assert!((4..=5).contains(&lines(8, 15)) && lines(8, 7) == 0);
    let mut applied = 3967;
    assert_eq!(ring.next(&mut applied, 4000), Next::Overrun);
    applied = 3968;
    assert_eq!(ring.next(&mut applied, 4000), Next::Given(row_of(3969)));
    assert_eq!(ring.next(&mut applied, 3969), Next::Done);
    assert_eq!(ring.next(&mut applied, 4001), Next::Ahead);
}

/// Rows that are read together are those that were put in, and end where they have to.
#[test]
fn rows_together() {
    let shape = Shape::new(13, None).unwrap();
    let ring = Ring::new(32, shape);
    let most = Most { rows: 5, time: 40 };
    let (mut applied, mut bytes) = (0, vec![9; 7]);
    for number in 1..=20_u64 {
        let mut row = Row::empty(shape, number, number * 3, number == 9);
        row.bytes_mut().fill(number as u8);
        row.time += if number > 12 { 100 } else { 0 };
        ring.put(&row);
    }
    ring.publish(20);
    let mut ends = Vec::new();
    let mut numbers = Vec::new();
    while applied < 18 {
        let before = applied;
        let taken = ring.take(&mut applied, 18, most, &mut bytes);
        assert_eq!(bytes.len(), taken.rows * 13);
        for (at, row) in bytes.chunks(13).enumerate() {
            assert!(row.iter().all(|b| *b == row[0]), "{row:?}");
            assert_eq!(u64::from(row[0]), before + 1 + at as u64);
            numbers.push(row[0]);
        }
        ends.push((taken.rows, taken.end));
    }
    assert_eq!(
        ends,
        [
            (5, End::Full),
            (3, End::Beat(27)),
            (3, End::Full),
            (5, End::Full),
            (1, End::Done)
        ]
    );
    assert_eq!(numbers.len(), 17);
    let none = |end| Taken {
        rows: 0,
        last: 0,
        end,
    };
    assert_eq!(
        ring.take(&mut applied, 18, most, &mut bytes),
        none(End::Done)
    );
    assert_eq!(
        ring.take(&mut applied, 21, most, &mut bytes),
        none(End::Ahead)
    );
    assert_eq!((applied, bytes.len()), (18, 0));
    ring.put(&Row::empty(shape, 51, 0, false));
    assert_eq!(
        ring.take(&mut applied, 20, most, &mut bytes),
        none(End::Overrun)
    );
    assert_eq!(applied, 18);
}
