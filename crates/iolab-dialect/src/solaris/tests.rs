//! Lines of the documents, lines that contradict themselves, and any lines at all.

use super::lower::Row;
use super::{ImportOptions, ImportedConfig, LineFault, import};

fn options() -> ImportOptions {
    ImportOptions {
        device: Some("scsi7200-1995".into()),
        name: "old".into(),
        ..ImportOptions::default()
    }
}

fn try_all(text: &str, options: &ImportOptions) -> Result<ImportedConfig, LineFault> {
    import(&[("lines".to_owned(), text.to_owned())], options)
}

fn all(text: &str) -> ImportedConfig {
    try_all(text, &options()).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

fn stack(text: &str) -> String {
    let all = all(text);
    all.stack.unwrap_or_else(|| panic!("{text}: {:?}", all.problem))
}

fn row<'a>(imported: &'a ImportedConfig, tunable: &str) -> &'a Row {
    let found = imported.rows.iter().find(|row| row.tunable == tunable);
    found.unwrap_or_else(|| panic!("{tunable}: {:#?}", imported.rows))
}

const MADE: &str = "newfs /dev/rdsk/c1t0d0s0\n";

#[test]
fn sol_12_etc_system() {
    let imported = all(&format!(
        "* The article's two listings\n\
         set maxphys = 2097152\nset md:md_maxphys=2097152\nset vxio:vol_maxio=4096\n\
         set ufs_HW=16777216\nset ufs:ufs_LW = 0x800000\n{MADE}"
    ));
    assert_eq!(row(&imported, "maxphys").value, "2097152 bytes (2 MiB)");
    assert_eq!(row(&imported, "vol_maxio").value, "4096 x 512 bytes (2 MiB)");
    assert_eq!(row(&imported, "ufs_LW").value, "8388608 bytes (8 MiB)");
    assert!(row(&imported, "md_maxphys").is_caution, "no line makes a metadevice");
    let stack = imported.stack.unwrap();
    assert!(stack.contains("max_sectors_kb = 2048"), "{stack}");
    assert!(stack.contains("system = { ufs_HW = 16777216, ufs_LW = 8388608 }"), "{stack}");
    assert!(stack.contains("# lines:2: set maxphys = 2097152"), "{stack}");
}

#[test]
fn sol_13_adb() {
    let imported = all(&format!(
        "# adb -kw /dev/ksyms /dev/mem\nphysmem 4dd7\nufs_HW/D\nufs_HW:\nufs_HW:  6291456\n\
         ufs_HW/W 0t16777216\nufs_HW: 0x600000 = 0x1000000\nufs_LW/W 800000\n$q\n\
         echo \"ufs_WRITES/W 0\" | adb -kw\n{MADE}"
    ));
    assert_eq!(row(&imported, "physmem").value, "19927 pages of 8 KiB (155.7 MiB)");
    let set: Vec<&Row> = imported.rows.iter().filter(|row| row.tunable == "ufs_HW").collect();
    assert_eq!(set[1].effect, "replaced by lines:6; as adb found it");
    assert!(set[2].effect.ends_with("adb answers ufs_HW: 0x600000 = 0x1000000"), "{set:#?}");
    assert!(!set[3].is_caution && set[3].effect == "the answer of adb", "{set:#?}");
    let low = row(&imported, "ufs_LW");
    assert!(low.value.starts_with("8388608 ") && low.effect.contains("hexadecimal"), "{low:?}");
    let stack = imported.stack.unwrap();
    assert!(stack.contains("ufs_WRITES = 0") && stack.contains("memory = \"159416k\""), "{stack}");
}

#[test]
fn a_cluster_that_is_no_stripe_is_told_of() {
    let lines = "set maxphys=1048576\nset md:md_maxphys=1048576\n\
                 metainit d0 1 8 a b c d e f g h -i 128k\n\
                 newfs /dev/md/rdsk/d0\ntuneufs -a 16 /dev/md/rdsk/d0\n\
                 maximum contiguous block count changes from 16 to 128\n";
    let imported = all(lines);
    let tuned = row(&imported, "tunefs -a");
    assert!(tuned.is_caution, "{tuned:?}");
    for part in ["changes nothing: it was 16", "128 KiB is not the stripe of 8 x 128 KiB = 1 MiB"] {
        assert!(tuned.effect.contains(part), "{tuned:?}");
    }
    assert!(tuned.effect.contains("128 blocks would be"), "{tuned:?}");
    assert!(row(&imported, "tunefs answers").is_caution);
    assert_eq!(row(&imported, "tuneufs").effect, "taken for tunefs(1M): there is no tuneufs");
    let right = all(&lines.replace("-a 16", "-a 128"));
    assert!(right.rows.iter().all(|row| !row.is_caution), "{:#?}", right.rows);
    let stack = right.stack.unwrap();
    assert!(stack.contains("layout = \"raid0\", unit_bytes = 131072"), "{stack}");
    assert!(stack.contains("mkfs_options = [\"-C 128\"]"), "{stack}");
}

#[test]
fn geometries_become_volumes() {
    let big = "set maxphys=1048576\nset md:md_maxphys=1048576\nset vxio:vol_maxio=2048\n";
    for (lines, parts) in [
        ("metainit d5 -r a b c d e f g h -i 128k\nnewfs -C 112 /dev/md/rdsk/d5", "raid5 8 131072"),
        (
            "metainit d1 1 4 a b c d -i 64k\nmetainit d2 1 4 e f g h -i 64k\nmetainit d0 -m d1\n\
          metattach d0 d2\nnewfs -C 32 /dev/md/rdsk/d0",
            "raid1 2 raid0 4 65536",
        ),
        (
            "vxassist -g dg make vol 8g layout=raid5,nolog ncol=8 stripeunit=128k\n\
          newfs -C 112 /dev/vx/rdsk/dg/vol",
            "raid5 8 131072",
        ),
        (
            "vxassist make vol 8g layout=stripe-mirror ncol=4 stripeunit=64k\n\
          newfs -C 32 /dev/vx/rdsk/vol",
            "raid0 4 65536 raid1 2",
        ),
        (
            "vxassist make vol 8g layout=stripe ncol=4 stripeunit=256\n\
          newfs -C 64 /dev/vx/rdsk/vol",
            "raid0 4 131072",
        ),
        ("metainit d7 -t d1 d2\nmetainit d1 1 2 a b\nnewfs -C 4 /dev/md/rdsk/d7", "raid0 2 16384"),
    ] {
        let stack = stack(&format!("{big}{lines}"));
        for part in parts.split(' ') {
            assert!(stack.contains(part), "{lines}: no {part} in\n{stack}");
        }
        assert!(stack.contains("max_sectors_kb = 1024"), "{stack}");
    }
}

#[test]
fn lines_of_a_pool_become_a_stack() {
    let of = |lines: &str| {
        let options = ImportOptions { release: Some(10), ..options() };
        let imported = try_all(lines, &options).expect(lines);
        (imported.stack.unwrap_or_else(|| panic!("{:?}", imported.problem)), imported.rows)
    };
    let (text, rows) = of("zpool create -f tank mirror c1t0d0 c1t1d0 log c2t0d0\n\
         zfs create -o atime=off tank/db\nzfs set recordsize=8k tank/db\n\
         zfs set compression=lzjb tank\nset zfs:zfs_arc_max=0x40000000\n");
    for part in [
        "raid1",
        "log_device.device.profile",
        "fs = \"zfs\"\nkernel = \"2.6.32\"",
        "\"-O atime=off\", \"-O recordsize=8192\"",
        "zfs_arc_max = 1073741824",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    let cautions: Vec<&str> =
        rows.iter().filter(|row| row.is_caution).map(|row| row.effect.as_str()).collect();
    assert_eq!(cautions, ["none: the model stores data as they are"]);
    for (lines, parts) in [
        ("zpool create tank c1t0d0", "[device]"),
        ("zpool create tank c1t0d0 c1t1d0 c1t2d0", "raid0 members unit_bytes=524288"),
        ("zpool create tank mirror a b mirror c d", "raid0 raid1"),
        ("zpool create tank raidz a b c log mirror d e", "members=3 raidz1 log_device"),
        ("zpool create -f tank raidz c1t0d0 c1t1d0 c1t2d0", "members=3 raidz1 unit_bytes=512"),
        (
            "zpool create -o ashift=12 -O recordsize=8k tank raidz c1t0d0 c1t1d0 c1t2d0",
            "unit_bytes=4096 recordsize=8192",
        ),
        ("zpool create tank raidz2 a b c d raidz2 e f g h", "raid0 raidz2 members=4"),
    ] {
        let (text, _) = of(lines);
        for part in parts.split(' ').map(|part| {
            if part.starts_with("recordsize") { part.to_owned() } else { part.replace('=', " = ") }
        }) {
            assert!(text.contains(&part), "{lines}: no {part} in\n{text}");
        }
    }
}

/// Rows of mcf, with this type of the data.
fn mcf(kind: &str) -> String {
    format!(
        "samfs1 10 ma samfs1 on\n/dev/dsk/c1t0d0s0 11 mm samfs1 on\n\
         /dev/dsk/c1t1d0s0 12 {kind} samfs1 on\n"
    )
}

#[test]
fn lines_of_qfs_become_words_of_the_stack() {
    let lines = format!(
        "set maxphys=1048576\n{}sammkfs -a 512 samfs1\n\
         mount -F samfs -o maxcontig=112,wr_throttle=16384,stripe=1,qwrite,noatime samfs1 /q\n",
        mcf("mr")
    );
    let imported = all(&lines);
    assert!(imported.rows.iter().all(|row| !row.is_caution), "{:#?}", imported.rows);
    let stack = imported.stack.unwrap();
    for part in [
        "meta_device.device.profile = \"scsi7200-1995\"\nmeta_device.queue = { scheduler",
        "fs = \"qfs\"\nkernel = \"solaris-8\"\n",
        "mkfs_options = [\"-a 512\"]\nmount_options = [\"maxcontig=112\", \"wr_throttle=16384\", \
         \"stripe=1\", \"qwrite\", \"noatime\"]",
    ] {
        assert!(stack.contains(part), "no {part} in\n{stack}");
    }
    let late = ImportOptions { release: Some(9), ..options() };
    let text = format!(
        "{}sammkfs -a 64 samfs1\nmount -F samfs -o readahead=896,writebehind=128 samfs1 /q\n",
        mcf("md")
    );
    let stack = try_all(&text, &late).unwrap().stack.unwrap();
    assert!(stack.contains("[\"-a 64\", \"-t md\"]"), "{stack}");
    assert!(stack.contains("[\"readahead=896\", \"writebehind=128\"]"), "{stack}");
    let together = all("q 10 ms q on\n/dev/dsk/c1t0d0s0 11 md q on\nsammkfs -a 16 q\n");
    let stack = together.stack.unwrap();
    assert!(!stack.contains("meta_device") && stack.contains("[\"-a 16\"]"), "{stack}");
    let alone = all("sammkfs -a 512 samfs1\n").stack.unwrap();
    assert!(alone.contains("# assumed: no row of mcf says it"), "{alone}");
}

#[test]
fn the_volume_of_qfs_is_that_of_its_data() {
    let stack = stack(
        "set maxphys=1048576\nset md:md_maxphys=1048576\n\
         metainit d5 -r a b c d e f g h -i 128k\nmetainit d1 1 2 i j -i 64k\n\
         samfs1 10 ma samfs1 on\n/dev/md/dsk/d1 11 mm samfs1 on\n\
         /dev/md/dsk/d5 12 mr samfs1 on\nsammkfs -a 896 samfs1\n\
         mount -F samfs -o maxcontig=112 samfs1 /q\n",
    );
    assert!(stack.contains("layout = \"raid5\", unit_bytes = 131072"), "{stack}");
}

#[test]
fn further_devices_of_qfs_are_told_of() {
    let imported =
        all(&format!("{}/dev/dsk/c1t2d0s0 13 mr samfs1 on\nsammkfs samfs1\n", mcf("mr")));
    let cautions: Vec<&Row> = imported.rows.iter().filter(|row| row.is_caution).collect();
    assert!(
        matches!(cautions[..], [one] if one.effect.contains("one device of data")),
        "{cautions:#?}"
    );
    assert!(imported.stack.is_some());
}

#[test]
fn lines_of_vxfs_become_words_of_the_stack() {
    let stack = stack(
        "mkfs -F vxfs -o bsize=8192,align=524288 /dev/rdsk/c1t0d0s0 8388608\n\
         mount -F vxfs -o nolog,mincache=direct,convosync=delay /dev/dsk/c1t0d0s0 /m\n\
         vxtunefs -o read_pref_io=64k,read_nstream=7 /m\n\
         /dev/dsk/c1t0d0s0 write_pref_io=65536,write_nstream=1,max_diskq=1m\n",
    );
    assert!(
        stack.contains(
            "fs = \"vxfs\"\nkernel = \"solaris-8\"\n\
             memory = \"128m\"  # assumed: no line says it\n\
             mkfs_options = [\"-o bsize=8192\", \"-o align=524288\", \
             \"-o read_pref_io=65536\", \"-o read_nstream=7\", \"-o write_pref_io=65536\", \
             \"-o write_nstream=1\", \"-o max_diskq=1048576\"]\n\
             mount_options = [\"nolog\", \"mincache=direct\", \"convosync=delay\"]"
        ),
        "{stack}"
    );
    let late = all("mkfs -F vxfs d\nvxtunefs -o read_ahead=1 /m\n");
    assert!(row(&late, "vxtunefs read_ahead").is_caution);
}

#[test]
fn options_of_ufs_become_words_of_the_stack() {
    let stack = stack(
        "% newfs -C 14 -b 8192 -f 1024 -i 8192 -m 1 -o space -c 16 -N /dev/rdsk/c1t0d0s0 &\n\
         tunefs -e 4096 -m 5 /dev/rdsk/c1t0d0s0\n\
         /dev/dsk/c1t0d0s0 /dev/rdsk/c1t0d0s0 /u ufs 2 yes logging,noatime\n\
         mkfile 500m testfile &\n# iostat -x 5\n## a comment\n",
    );
    assert!(
        stack.contains(
            "mkfs_options = [\"-C 14\", \"-b 8192\", \"-f 1024\", \"-i 8192\", \"-o space\", \
             \"-c 16\", \"-e 4096\", \"-m 5\"]\nmount_options = [\"logging\", \"noatime\"]"
        ),
        "{stack}"
    );
    assert!(stack.contains("memory = \"128m\"  # assumed"), "{stack}");
    let odd = all("newfs -b 4096 d\nmount -o nologging d /u\n");
    assert!(row(&odd, "newfs -b").is_caution);
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_line_and_the_range() {
    for (lines, place, parts) in [
        ("set priority_paging=1", "1:5", "tunable of Solaris 7|this is Solaris 8"),
        (
            "mkfs -F vxfs -o bsize=8192 /dev/rdsk/v\ntunefs -a 16 /dev/rdsk/v",
            "2:1",
            "`tunefs` is of ufs, and lines:1 makes this a vxfs|vxtunefs",
        ),
        ("mkfs -F vxfs -o bsize=8192 v\ntunefs -a 16 w", "2:1", "one file system|vxtunefs"),
        (
            "newfs -C 112 d",
            "1:7",
            "917504 bytes (896 KiB) is above maxphys of 128 KiB|1 to 1024|set maxphys=917504",
        ),
        (
            "set maxphys=1048576\nvxassist make v 1g layout=stripe ncol=4 stripeunit=128k\n\
          newfs -C 64 /dev/vx/rdsk/v",
            "3:7",
            "volume manager's limit of 256 KiB|vol_maxio=1024",
        ),
        ("q 10 ma q on\n/dev/dsk/a 11 mr q on", "1:6", "no row of metadata|mcf(4)"),
        ("q 10 ma q on\n/dev/dsk/a 11 mm q on", "1:6", "no row of data"),
        ("q 0 ma q on", "1:3", "1 to 65534"),
        ("q 10 ms q on\n/dev/dsk/a 11 mr q on", "2:15", "`mr` in family q, which is ms|md"),
        (
            "q 10 ma q on\n/dev/dsk/a 11 mm q on\n/dev/dsk/b 12 md q on\nsammkfs -a 512 q",
            "4:9",
            "-a 512 with devices of type md|16, 32 or 64 KiB|mr",
        ),
        ("mount -F samfs -o readahead=1024 q /q", "1:19", "Solaris 9 to 10|this is Solaris 8"),
        ("sammkfs -a 20 q", "1:12", "8 to 65528 KiB in steps of 8"),
        ("zpool create tank raidz c0t0d0", "1:19", "raidz of 1 disk|2 at least|zpool(1M)"),
        ("zpool create tank mirror a", "1:19", "mirror of 1 disk"),
        ("zpool create tank a b", "1:1", "ZFS begins with Solaris 10|--release 10"),
        ("newfs -C 917504 d", "1:10", "1 to 1024 blocks of 8 KiB|917504 bytes would be 112"),
        ("newfs -C 128k d", "1:10", "128 KiB are 16 blocks of 8 KiB"),
        ("sammkfs -a 524288 q", "1:12", "8 to 65528 KiB in steps of 8|would be 512 KiB"),
        ("set vxio:vol_maxio=2097152", "1:20", "16 to 65536|2097152 bytes would be 4096"),
        ("set maxphys=1024", "1:13", "8192 to 2147483647 bytes|1024 KiB would be 1048576"),
        ("set maxphys=1m", "1:13", "1 MiB are 1048576 bytes"),
        ("mount -F samfs -o wr_throttle=16777216 q /q", "1:31", "256 to 32768 KiB|would be 16384"),
        ("mkfs -F vxfs -o align=1000 d", "1:23", "in steps of 512"),
        ("vxtunefs -o read_nstreams=7 /m", "1:13", "did you mean `read_nstream`?"),
        ("set ufs_WH=1", "1:5", "did you mean `ufs_HW`?"),
        ("set md:ufs_HW=1", "1:5", "does not belong to module md|set ufs:ufs_HW=..."),
        ("set maxphys", "1:5", "no `=`"),
        ("mkfs -F ext4 d", "1:9", "no file system of mkfs|known: ufs, vxfs"),
        ("mount -F ufs -o log d /m", "1:17", "mount knows no `log`"),
        ("newfs -q 1 d", "1:7", "has no option -q"),
        ("newfs -C 16", "1:1", "names no device"),
        ("newfs a b", "1:9", "'b' is one name too many"),
        ("metainit d0 -r a b -i 16k", "1:13", "RAID 5 of 2 disks|3 at least"),
        ("metainit d0 1 4 a b c", "1:15", "a stripe of 4 disks, and 3 are named"),
        ("metainit d0 1 2 a b -i 128", "1:24", "8 KiB to 100 MiB|-i 128k"),
        ("vxassist make v 1g layout=raid5 ncol=2", "1:1", "3 at least"),
        ("vxassist make v 1g layout=strip", "1:27", "no layout"),
        ("zfs set recordsize=8x tank", "1:20", "512 to 131072"),
        ("ufs_HW/W", "1:1", "needs one value"),
        ("tunef -a 16 d", "1:1", "not understood (did you mean `tunefs`?)"),
        ("newfs d\nsammkfs q", "2:1", "one file system|--fs NAME"),
    ] {
        let fault = try_all(lines, &options()).expect_err(lines);
        let told = fault.to_string();
        assert!(!told.contains('\n'), "{told}");
        assert!(told.starts_with(&format!("lines:{place}: `")), "{lines}: {told}");
        for part in parts.split('|') {
            assert!(told.contains(part), "{lines}: no {part:?} in {told}");
        }
    }
}

#[test]
fn pools_that_cannot_be_meant_are_refused_with_the_line() {
    for (lines, place, parts) in [
        ("zpool create tank raiz1 c1t0d0 c1t1d0", "1:19", "raiz1 is no kind of a vdev|raidz1"),
        ("zpool create tank raidz4 c1t0d0 c1t1d0", "1:19", "raidz4 is no kind of a vdev"),
        ("zpool create tank miror c1t0d0 c1t1d0", "1:19", "did you mean `mirror`"),
        ("zpool create raidz1 c1t0d0 c1t1d0", "1:14", "the name is missing"),
        ("zpool create tank c1t0d0 c1t0d0", "1:26", "named twice"),
        ("zpool create -o ashift=8 tank c1t0d0", "1:17", "9 to 16"),
        ("zpool create tank mirror a b raidz c d e", "1:1", "a mirror of 2 and a raidz of 3"),
        ("zpool create tank a raidz c d e", "1:1", "plain disks and a raidz"),
        ("zpool create tank a log", "1:21", "log of 0 disks"),
        ("zpool create tank mirror a b special c", "1:30", "special are not simulated"),
    ] {
        let told = try_all(lines, &options()).expect_err(lines).to_string();
        assert!(told.starts_with(&format!("lines:{place}: `")), "{lines}: {told}");
        for part in parts.split('|') {
            assert!(told.contains(part), "{lines}: no {part:?} in {told}");
        }
    }
}

#[test]
fn what_is_not_said_is_asked_for() {
    let imported = try_all(MADE, &ImportOptions { device: None, ..options() }).unwrap();
    assert!(imported.problem.unwrap().contains("which disks"));
    let imported = all("set maxphys=131072\n");
    assert!(imported.problem.unwrap().contains("no line is of a file system"));
    let both = "newfs d\nmkfs -F vxfs -o bsize=8192 e\n";
    let chosen = try_all(both, &ImportOptions { fs: Some("ufs".into()), ..options() }).unwrap();
    assert!(chosen.stack.is_some());
    let row = row(&chosen, "mkfs -F vxfs -o bsize");
    assert_eq!(row.effect, "none: it is of vxfs, the stack has ufs");
    let swapped = all("set ufs_HW=100\nset ufs_LW=200\nnewfs d");
    assert!(super::tests::row(&swapped, "ufs_HW").effect.contains("sets both back"));
}

#[test]
fn a_line_that_goes_on_is_one_line() {
    let stack = stack("metainit d0 -r a b \\\n  c d -i 16k\nnewfs -C 6 /dev/md/rdsk/d0");
    assert!(stack.contains("members = 4"), "{stack}");
}

proptest::proptest! {
    /// Any lines are a table or one line of refusal that points into the line, never a panic.
    #[test]
    fn any_lines_are_a_table_or_a_refusal(
        lines in proptest::collection::vec(
            "(#|%|\\*)? ?(set|newfs|tunefs|mkfs -F (ufs|vxfs)|mount -F (ufs|vxfs|samfs)|metainit|\
             metattach|vxassist make|vxtunefs|sammkfs|zpool create|zfs set|adb|echo|[a-z]{1,6})?\
             ( ?(-[a-zC]|-o|[a-z_]{1,12}=|ufs_HW[:/]W?|maxphys|maxcontig=|ncol=|layout=stripe|\
             raidz|d[0-3]|ma|mm|,|=|0t|0x|\"|[0-9]{1,21}[kmgbs]?|[ -~\u{e9}]{0,5})){0,9}\\\\?",
            0..6,
        )
    ) {
        match try_all(&lines.join("\n"), &options()) {
            Ok(imported) => {
                proptest::prop_assert!(imported.stack.is_some() != imported.problem.is_some());
                for row in &imported.rows {
                    proptest::prop_assert!(!row.effect.is_empty() && !row.effect.contains('\n'));
                }
            }
            Err(fault) => {
                proptest::prop_assert!(fault.at.start <= fault.typed.chars().count());
                proptest::prop_assert!(!fault.to_string().contains('\n'));
            }
        }
    }
}
