//! The first record: a dummy Ethernet header as a carrier's, and the form.

use millrace_steer::sequence::prefix::{ETHERTYPE, VERSION};
use millrace_steer::sequence::{Form, Key, Shape, State};

use super::Problem;

/// Bytes of the record.
pub const BYTES: usize = 30;
/// The flags of a carrier, all of them: it is none.
const FLAGS: u8 = 15;
const NO_TIME: u8 = 0xff;

/// The record of a form, for a sequencer that starts in `state`.
pub fn write(form: &Form, state: &State) -> [u8; BYTES] {
    let mut record = [0; BYTES];
    let time = form.shape().time().map_or(NO_TIME, |at| at as u8);
    let parts: [&[u8]; 8] = [
        &[0x02, 0x4d, 0x52, 0, 0xff, 0xff],
        &[0x02, 0x4d, 0x52, 1, 0, 0],
        &ETHERTYPE.to_be_bytes(),
        &[VERSION << 4 | FLAGS, form.slots() as u8],
        &[form.shape().row_bytes() as u8, time],
        &[u8::from(form.key().is_some()), 0],
        &form.cores().to_be_bytes(),
        &state.period().to_be_bytes(),
    ];
    let bytes = parts.into_iter().flatten();
    record.iter_mut().zip(bytes).for_each(|(r, b)| *r = *b);
    record
}

/// Reads the record. `key` is asked for where the capture is tagged.
///
/// # Errors
/// [`Problem::NoForm`], [`Problem::Form`], [`Problem::Untagged`], [`Problem::Tagged`].
pub fn read(record: &[u8], key: Option<Key>) -> Result<(Form, State), Problem> {
    let Ok(record) = <&[u8; BYTES]>::try_from(record) else {
        return Err(Problem::NoForm);
    };
    let [
        ..,
        slots,
        row,
        time,
        tagged,
        _,
        c0,
        c1,
        p0,
        p1,
        p2,
        p3,
        p4,
        p5,
        p6,
        p7,
    ] = *record;
    let time = (time != NO_TIME).then_some(usize::from(time));
    let shape = Shape::new(usize::from(row), time)?;
    let cores = u16::from_be_bytes([c0, c1]);
    let form = Form::new(cores, usize::from(slots), shape)?;
    let state = State::new(cores, u64::from_be_bytes([p0, p1, p2, p3, p4, p5, p6, p7]))?;
    let form = match (tagged, key) {
        (1, Some(key)) => form.with_key(key),
        (1, None) => return Err(Problem::Tagged),
        (_, Some(_)) => return Err(Problem::Untagged),
        (_, None) => form,
    };
    // What this does not read has one value.
    match write(&form, &state) == *record {
        true => Ok((form, state)),
        false => Err(Problem::NoForm),
    }
}
