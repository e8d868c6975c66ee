//! Contract of every store; that of `RocksDB` where its library is installed.

use std::path::Path;

use iolab_kv::{KvStore, StoreKind, StoreVisitor, directory, rocksdb, visit};
use iolab_model::Error;
use iolab_model::kv::{KvDurability, KvOption, KvOptions};

fn options() -> KvOptions {
    KvOptions {
        durability: KvDurability::Wal,
        table: "usertable".into(),
        options: Vec::new(),
        has_statistics: true,
    }
}

/// The contract.
struct Contract;

impl StoreVisitor for Contract {
    type Output = ();

    fn visit<S: KvStore + Send>(self, open: impl FnOnce() -> Result<S, Error>) {
        let store = open().unwrap();
        let mut value = b"before".to_vec();
        assert!(!store.get(b"none", &mut value).unwrap() && value.is_empty());
        for number in 0..1000_u32 {
            let key = format!("user{number:04}");
            store.put(key.as_bytes(), &[number as u8; 100]).unwrap();
        }
        store.put(b"user0007", b"changed").unwrap();
        assert!(store.get(b"user0007", &mut value).unwrap());
        assert_eq!(value, b"changed");
        store.put(b"user0008", b"").unwrap();
        assert!(store.get(b"user0008", &mut value).unwrap() && value.is_empty());
        store.delete(b"user0009").unwrap();
        assert!(!store.get(b"user0009", &mut value).unwrap());
        let mut keys = Vec::new();
        let mut each = |key: &[u8], _: &[u8]| keys.push(String::from_utf8_lossy(key).into_owned());
        assert_eq!(store.scan(b"user0006x", 3, &mut each).unwrap(), 3);
        assert_eq!(store.scan(b"user0999", 5, &mut each).unwrap(), 1);
        assert_eq!(keys, ["user0007", "user0008", "user0010", "user0999"]);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let store = &store;
                scope.spawn(move || {
                    let mut value = Vec::new();
                    for number in 0..200_u8 {
                        let key = [thread, number];
                        store.put(&key, &key).unwrap();
                        assert!(store.get(&key, &mut value).unwrap());
                        assert_eq!(value, key);
                    }
                });
            }
        });
        store.close().unwrap();
    }
}

#[test]
fn memory_keeps_the_contract() {
    visit(StoreKind::Memory, Path::new("/nowhere"), &options(), Contract);
}

fn is_installed() -> bool {
    rocksdb::find().inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
}

#[test]
fn rocksdb_keeps_the_contract_and_its_records() {
    if !is_installed() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("db");
    directory::take(&path, "rocksdb", false).unwrap();
    visit(StoreKind::RocksDb, &path, &options(), Contract);
    let again = rocksdb::RocksDb::open(&path, &options()).unwrap();
    let mut value = Vec::new();
    assert!(!again.is_new() && again.get(b"user0007", &mut value).unwrap());
    again.put(b"one", &[1; 1000]).unwrap();
    let facts = again.facts();
    let of = |name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| fact.value);
    assert!(of("written_bytes").unwrap() > 1000.0 && of("write_amplification").is_some());
    assert!(of("live_data_bytes").is_some(), "{facts:?}");
}

#[test]
fn rocksdb_names_the_option_that_it_refuses() {
    if !is_installed() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let option = |part: &str, name: &str, value: &str| KvOption {
        part: part.into(),
        name: name.into(),
        value: value.into(),
    };
    let of = |one| KvOptions { options: vec![one], ..options() };
    let wrong = of(option("cf", "write_bufer_size", "1"));
    let error = rocksdb::RocksDb::open(place.path(), &wrong).err().unwrap().to_string();
    assert!(error.contains("write_bufer_size"), "{error}");
    for right in [
        option("cf", "write_buffer_size", "1048576"),
        option("table", "block_size", "16384"),
        option("db", "max_background_jobs", "2"),
        option("cf", "compression", "kNoCompression"),
    ] {
        rocksdb::RocksDb::open(place.path(), &of(right)).map(drop).unwrap();
    }
}
