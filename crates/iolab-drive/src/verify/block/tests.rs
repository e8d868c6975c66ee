use iolab_model::Seed;
use iolab_workload::verify::Verify;
use proptest::prelude::*;

use super::{Fault, Generation, Place, SECTOR};

const OLD: Generation = Generation(0x0001_0000_0000_0007);
const NEW: Generation = Generation(0x0003_0002_0000_0009);

fn place(kind: Verify) -> Place {
    Place { file: 0x1234_5678, offset: 8192, kind }
}

fn block(place: Place, generation: Generation, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    Seed(generation.0).stream("rest", place.offset).fill(&mut bytes);
    place.compose(&mut bytes, generation);
    bytes
}

fn examine(place: Place, bytes: &[u8]) -> Result<Generation, Fault> {
    place.examine(bytes, &mut vec![0; bytes.len()], None)
}

#[test]
fn what_was_written_is_recognised() {
    for kind in [Verify::Headers, Verify::Full] {
        for size in [512, 1024, 4096] {
            let bytes = block(place(kind), NEW, size);
            assert_eq!(examine(place(kind), &bytes), Ok(NEW));
            assert_eq!(place(kind).examine_sectors(&bytes, &mut vec![0; size]), Ok(()));
            assert_eq!(place(kind).examine_belonging(&bytes, &mut vec![0; size]), Ok(()));
        }
    }
    assert_eq!((NEW.step(), NEW.worker(), NEW.sequence()), (3, 2, 9));
    assert_eq!(Generation::new(3, 2, 9), NEW);
}

proptest! {
    #[test]
    fn any_flipped_bit_of_a_full_block_is_named(
        at in 0_usize..4096, bit in 0_u32..8, size in prop::sample::select(vec![512_usize, 4096])
    ) {
        // Headers first: they are few, and every one of their bytes means something.
        let at = if bit == 7 { at % 48 } else { at };
        let at = at % size;
        let mut bytes = block(place(Verify::Full), NEW, size);
        let right = bytes[at];
        bytes[at] ^= 1 << bit;
        match examine(place(Verify::Full), &bytes) {
            Err(Fault::Flipped { generation, at: found, expected, got, count }) => {
                prop_assert_eq!((found, expected, got), (at, right, bytes[at]));
                prop_assert_eq!((generation, count), (NEW, 1));
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn a_torn_write_says_which_sectors_are_whose() {
    for kind in [Verify::Headers, Verify::Full] {
        let (old, new) = (block(place(kind), OLD, 4096), block(place(kind), NEW, 4096));
        let torn = [&new[..1024], &old[1024..]].concat();
        let Err(Fault::Torn { sectors, at }) = examine(place(kind), &torn) else { panic!("torn") };
        assert_eq!(at, 2);
        assert_eq!(sectors[..3], [Some(NEW), Some(NEW), Some(OLD)]);
        // Where writers raced that is no fault; a flipped byte still is.
        assert_eq!(place(kind).examine_sectors(&torn, &mut vec![0; 4096]), Ok(()));
        let mut flipped = torn.clone();
        flipped[1024 + 3] ^= 1;
        assert!(place(kind).examine_sectors(&flipped, &mut vec![0; 4096]).is_err());
    }
}

#[test]
fn a_write_that_stopped_before_an_empty_rest_is_torn() {
    let mut bytes = block(place(Verify::Full), NEW, 4096);
    bytes[3 * SECTOR..].fill(0);
    let Err(Fault::Torn { sectors, at }) = examine(place(Verify::Full), &bytes) else {
        panic!("torn")
    };
    assert_eq!((at, sectors[2], sectors[3]), (3, Some(NEW), None));
}

#[test]
fn a_block_of_another_place_says_where_it_belongs() {
    for kind in [Verify::Headers, Verify::Full] {
        let elsewhere = Place { offset: 40_960, ..place(kind) };
        let bytes = block(elsewhere, NEW, 4096);
        let fault = Fault::Misplaced { file: 0x1234_5678, offset: 40_960, generation: NEW };
        assert_eq!(examine(place(kind), &bytes), Err(fault.clone()));
        assert_eq!(place(kind).examine_belonging(&bytes, &mut vec![0; 4096]), Err(fault));
    }
}

#[test]
fn zeros_and_foreign_bytes_are_told_apart() {
    assert_eq!(examine(place(Verify::Full), &[0; 4096]), Err(Fault::Zeros));
    let foreign = vec![0xa5; 4096];
    assert_eq!(examine(place(Verify::Full), &foreign), Err(Fault::Foreign { start: [0xa5; 16] }));
    let foreign = Err(Fault::Foreign { start: [0xa5; 16] });
    assert_eq!(examine(place(Verify::Headers), &[0xa5; 512]), foreign);
}

#[test]
fn headers_leave_the_payload_alone() {
    let mut bytes = vec![0x11; 4096];
    place(Verify::Headers).compose(&mut bytes, NEW);
    assert!(bytes[48..512].iter().all(|byte| *byte == 0x11));
    bytes[100] = 0;
    assert_eq!(examine(place(Verify::Headers), &bytes), Ok(NEW), "only full sees the payload");
}
