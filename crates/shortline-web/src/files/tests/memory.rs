//! Files that are kept in memory, files that are too large for that, and what several folders share.

use super::*;

fn large() -> Bed {
    let cache = CacheOptions {
        file_bytes_max: 4,
        ..CacheOptions::default()
    };
    Bed::with_cache(FilesOptions::default(), &cache)
}

fn only_file(plan: &Plan) -> Arc<OpenFile> {
    match &plan.body {
        PlanBody::Segments(segments) => match &segments[..] {
            [
                Segment::File {
                    file, offset: 0, ..
                },
            ] => Arc::clone(file),
            other => panic!("{other:?}"),
        },
        PlanBody::Empty => panic!("empty"),
    }
}

#[test]
fn a_large_file_that_is_cut_ends_that_response_alone() {
    let bed = large();
    let file = only_file(&bed.get("/file.txt"));
    assert_eq!(file.len(), 10);
    let now = file.read_now(2, 3).unwrap();
    assert!(now.is_none_or(|bytes| &bytes[..] == b"234"));
    assert_eq!(&file.read_blocking(8, 2).unwrap()[..], b"89");
    assert_eq!(
        file.read_blocking(8, 3).unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
    bed.write("file.txt", b"01234");
    assert_eq!(
        file.read_blocking(2, 4).unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
    assert!(
        file.read_now(8, 2)
            .is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
            || file.read_blocking(8, 2).is_err()
    );
    // The next request sees the new length at once.
    assert_eq!(answer(&bed.get("/file.txt")), (200, "01234".into()));
}

#[test]
fn a_large_file_that_is_replaced_is_sent_as_it_was() {
    let bed = large();
    let file = only_file(&bed.get("/file.txt"));
    bed.write("new", b"abcdefghij");
    fs::rename(bed.dir.path().join("new"), bed.dir.path().join("file.txt")).unwrap();
    assert_eq!(&file.read_blocking(0, 10).unwrap()[..], b"0123456789");
}

#[test]
fn without_a_cache_all_is_the_same() {
    let cache = CacheOptions {
        bytes_max: 0,
        files_max: 0,
        open_files_max: 0,
        ..CacheOptions::default()
    };
    let bed = Bed::with_cache(FilesOptions::default(), &cache);
    assert_eq!(answer(&bed.get("/file.txt")).1, "0123456789");
    bed.write("file.txt", b"new");
    assert_eq!(answer(&bed.get("/file.txt")).1, "new");
}

#[test]
fn folders_with_one_cache_do_not_see_each_other() {
    let cache = FileCache::new(&CacheOptions::default());
    let beds = ["one", "two"].map(|content| {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), FilesOptions::default(), &cache).unwrap();
        let bed = Bed { dir, files };
        bed.write("file.txt", content.as_bytes());
        bed
    });
    for _ in 0..2 {
        let seen = beds.each_ref().map(|bed| answer(&bed.get("/file.txt")).1);
        assert_eq!(seen, ["one", "two"]);
    }
}

#[test]
fn what_is_in_memory_needs_no_waiting() {
    let bed = bed();
    assert_eq!(bed.get("/file.txt").status, 200);
    let head = RequestHead {
        method: &Method::GET,
        target: "/file.txt",
        headers: &HeaderMap::new(),
        compress: true,
    };
    let plan = bed
        .files
        .respond_now(&head, shortline_base::clock::now_ns())
        .unwrap();
    assert_eq!(answer(&plan).1, "0123456789");
}
