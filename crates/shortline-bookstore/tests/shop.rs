//! The shop on real databases. Each interaction answers, and leaves in the tables what the
//! specification says. A database that is not installed is skipped, with a line.
#![allow(clippy::unwrap_used)]

mod bench;

use bench::{Bench, for_each_database};
use shortline_bookstore::{Kind, Locking};

/// Everything that a customer can do, in a sensible order, with its effects on the tables.
#[test]
fn all_fourteen_interactions_answer_and_leave_what_they_should() {
    for_each_database(async |kind| {
        for locking in [Locking::Application, Locking::Database] {
            let Some(bench) = Bench::open(kind, locking).await else {
                return;
            };
            everything(&bench).await;
        }
    });
}

async fn everything(bench: &Bench) {
    let home = bench.get("/home?c_id=1").await;
    assert!(home.contains("Hello "), "{home}");
    let best = bench.get("/best_sellers?subject=ARTS").await;
    assert!(best.contains("product_detail"), "{best}");
    let new = bench.get("/new_products?subject=COMPUTERS").await;
    assert!(new.contains("product_detail"), "{new}");
    let detail = bench.get("/product_detail?i_id=7").await;
    assert!(detail.contains("in stock"), "{detail}");
    bench.get("/search_request").await;
    for search in ["author", "title", "subject"] {
        let sought = if search == "subject" {
            "ARTS"
        } else {
            "BABABA"
        };
        let path = format!("/search_results?search_type={search}&search_string={sought}");
        let found = bench.get(&path).await;
        assert!(found.contains("product_detail"), "{search}: {found}");
    }
    bench.get("/customer_registration").await;
    bench.get("/order_inquiry?c_id=2").await;
    let order = bench.get("/order_display?uname=AL&passwd=al").await;
    assert!(
        order.contains("Order") || order.contains("nothing yet"),
        "{order}"
    );
    carts(bench).await;
    buying(bench).await;
    administration(bench).await;
}

async fn carts(bench: &Bench) {
    // A new cart gets a book even if none was chosen.
    let cart = bench.post("/shopping_cart", "").await;
    let number = hidden(&cart, "shopping_id");
    let lines = format!("SELECT COUNT(*) FROM shopping_cart_line WHERE scl_sc_id = {number}");
    assert_eq!(bench.number(&lines).await, 1);
    // The same book twice is one line with quantity two.
    for _ in 0..2 {
        bench
            .post("/shopping_cart", &format!("shopping_id={number}&i_id=11"))
            .await;
    }
    let held = format!(
        "SELECT scl_qty FROM shopping_cart_line WHERE scl_sc_id = {number} AND scl_i_id = 11"
    );
    assert!(bench.number(&held).await >= 2);
    bench
        .post("/shopping_cart", &format!("shopping_id={number}&qty_11=5"))
        .await;
    assert_eq!(bench.number(&held).await, 5);
    bench
        .post("/shopping_cart", &format!("shopping_id={number}&qty_11=0"))
        .await;
    let left = format!(
        "SELECT COUNT(*) FROM shopping_cart_line WHERE scl_sc_id = {number} AND scl_i_id = 11"
    );
    assert_eq!(bench.number(&left).await, 0);
}

async fn buying(bench: &Bench) {
    let cart = bench.post("/shopping_cart", "i_id=3").await;
    let cart = hidden(&cart, "shopping_id");
    bench
        .post("/shopping_cart", &format!("shopping_id={cart}&qty_3=4"))
        .await;
    // A returning customer is the same one.
    let before = bench.number("SELECT COUNT(*) FROM customer").await;
    let back = format!("shopping_id={cart}&returning_flag=Y&uname=OG&passwd=og");
    assert_eq!(hidden(&bench.post("/buy_request", &back).await, "c_id"), 1);
    assert_eq!(bench.number("SELECT COUNT(*) FROM customer").await, before);
    // A new customer is inserted, with name and address.
    let new = format!(
        "shopping_id={cart}&returning_flag=N&fname=Ada&lname=Lovelace&street1=A&street2=B&city=C\
         &state=D&zip=E&country=Canada&phone=123&email=a%40b.c&birthdate=1915-12-10&data=x"
    );
    let customer = hidden(&bench.post("/buy_request", &new).await, "c_id");
    assert_eq!(
        bench.number("SELECT COUNT(*) FROM customer").await,
        before + 1
    );
    assert_eq!(customer, before + 1);
    // The same address is not inserted twice.
    let addresses = bench.number("SELECT COUNT(*) FROM address").await;
    bench.post("/buy_request", &new).await;
    assert_eq!(
        bench.number("SELECT COUNT(*) FROM address").await,
        addresses
    );

    for (stock, left) in [(20, 16), (12, 29)] {
        buy_four(bench, customer, cart, stock, left).await;
        bench
            .post("/shopping_cart", &format!("shopping_id={cart}&i_id=3"))
            .await;
        bench
            .post("/shopping_cart", &format!("shopping_id={cart}&qty_3=4"))
            .await;
    }
}

/// Clause 2.7.3: buying four of item 3 with `stock` in stock leaves `left`.
async fn buy_four(bench: &Bench, customer: i64, cart: i64, stock: i64, left: i64) {
    bench
        .run(&format!("UPDATE item SET i_stock = {stock} WHERE i_id = 3"))
        .await;
    let orders = bench.number("SELECT COUNT(*) FROM orders").await;
    let form = format!(
        "c_id={customer}&shopping_id={cart}&cc_type=VISA&cc_number=1234567890123456&cc_name=Ada\
         &shipping=AIR"
    );
    let page = bench.post("/buy_confirm", &form).await;
    assert!(page.contains("Your order is number"), "{page}");
    assert_eq!(
        bench.number("SELECT COUNT(*) FROM orders").await,
        orders + 1
    );
    let order = bench.number("SELECT MAX(o_id) FROM orders").await;
    let of = |what: &str| format!("SELECT {what} = {order}");
    assert_eq!(
        bench
            .number(&of("ol_qty FROM order_line WHERE ol_i_id = 3 AND ol_o_id"))
            .await,
        4
    );
    assert_eq!(
        bench
            .number(&of("COUNT(*) FROM cc_xacts WHERE cx_o_id"))
            .await,
        1
    );
    let total = bench.number(&of("o_total FROM orders WHERE o_id")).await;
    let sum = bench
        .number(&of("o_sub_total + o_tax + 400 FROM orders WHERE o_id"))
        .await;
    assert_eq!(total, sum);
    assert_eq!(
        bench.number(&of("o_c_id FROM orders WHERE o_id")).await,
        customer
    );
    assert_eq!(
        bench
            .number("SELECT i_stock FROM item WHERE i_id = 3")
            .await,
        left
    );
    let lines = format!("SELECT COUNT(*) FROM shopping_cart_line WHERE scl_sc_id = {cart}");
    assert_eq!(bench.number(&lines).await, 0);
    let name = if customer == 1 {
        "OG".to_owned()
    } else {
        digsyl(customer)
    };
    let latest = format!("/order_display?uname={name}&passwd={}", name.to_lowercase());
    assert!(
        bench
            .get(&latest)
            .await
            .contains(&format!(">{order}</span>"))
    );
}

async fn administration(bench: &Bench) {
    bench.get("/admin_request?i_id=5").await;
    bench
        .post(
            "/admin_confirm",
            "i_id=5&cost=1234&image=10240&thumbnail=5120",
        )
        .await;
    assert_eq!(
        bench.number("SELECT i_cost FROM item WHERE i_id = 5").await,
        1234
    );
    assert_eq!(
        bench
            .number("SELECT i_image FROM item WHERE i_id = 5")
            .await,
        10_240
    );
    let related = "SELECT COUNT(*) FROM item WHERE i_id = 5 AND 5 NOT IN \
        (i_related1, i_related2, i_related3, i_related4, i_related5)";
    assert_eq!(bench.number(related).await, 1);
}

/// A buyer gets item 1 and waits for item 2. The holder of item 2 then wants item 1. The database
/// rolls back the purchase, which has changed less.
#[test]
fn a_purchase_that_a_deadlock_undoes_is_made_again() {
    for_each_database(async |kind| {
        let Some(bench) = Bench::open(kind, Locking::Application).await else {
            return;
        };
        let cart = bench.post("/shopping_cart", "i_id=1").await;
        let cart = hidden(&cart, "shopping_id");
        bench
            .post("/shopping_cart", &format!("shopping_id={cart}&i_id=2"))
            .await;
        let orders = bench.number("SELECT COUNT(*) FROM orders").await;
        let last = bench.number("SELECT MAX(o_id) FROM orders").await;
        // PostgreSQL rolls back the one that notices. That must be the purchase, which waits first.
        let patient = match kind {
            Kind::Postgres => "SET deadlock_timeout = '10min';",
            Kind::MariaDb => "",
        };
        let first = format!(
            "{patient} BEGIN; UPDATE item SET i_stock = i_stock + 1 WHERE i_id BETWEEN 2 AND 150"
        );
        let form =
            format!("c_id=1&shopping_id={cart}&cc_type=VISA&cc_number=1&cc_name=Ada&shipping=AIR");
        let (holds, held) = tokio::sync::oneshot::channel();
        let other = bench.run_in_two(
            &first,
            async || {
                holds.send(()).unwrap();
                bench.until_a_lock_is_waited_for().await;
            },
            "UPDATE item SET i_stock = 50 WHERE i_id = 1; COMMIT",
        );
        let purchase = async {
            held.await.unwrap();
            bench.post("/buy_confirm", &form).await;
        };
        tokio::join!(other, purchase);
        assert_eq!(
            bench.number("SELECT COUNT(*) FROM orders").await,
            orders + 1
        );
        // The number of an order that was rolled back is lost, which shows that there was one. There
        // are two if the purchase has item 1 again before the other wakes up.
        let now = bench.number("SELECT MAX(o_id) FROM orders").await;
        assert!(now >= last + 2, "{kind}: no deadlock");
        let stock = "SELECT i_stock FROM item WHERE i_id = 1";
        assert_eq!(bench.number(stock).await, 49);
    });
}

#[test]
fn what_is_wrong_is_said_and_changes_nothing() {
    for_each_database(async |kind| {
        let Some(bench) = Bench::open(kind, Locking::Application).await else {
            return;
        };
        let orders = bench.number("SELECT COUNT(*) FROM orders").await;
        for (path, status) in [
            ("/nothing", 404),
            ("/best_sellers", 400),
            ("/product_detail?i_id=x", 400),
            ("/product_detail?i_id=999999", 404),
            ("/search_results?search_type=isbn&search_string=1", 400),
            ("/order_display?uname=OG&passwd=wrong", 403),
            ("/buy_confirm", 405),
            ("/images/9999999/1.gif", 404),
        ] {
            assert_eq!(bench.status("GET", path, "").await, status, "{path}");
        }
        let nobody = "c_id=999999&shopping_id=1&cc_type=VISA&cc_number=1&cc_name=A&shipping=AIR";
        assert_eq!(bench.status("POST", "/buy_confirm", nobody).await, 404);
        let late = "c_id=1&shopping_id=1&cc_type=VISA&cc_number=1&cc_name=A&shipping=AIR\
            &street1=A&street2=B&city=C&state=D&zip=E&country=Atlantis";
        assert_eq!(bench.status("POST", "/buy_confirm", late).await, 404);
        let long = "x".repeat(20_000);
        assert_eq!(bench.status("POST", "/shopping_cart", &long).await, 413);
        assert_eq!(bench.number("SELECT COUNT(*) FROM orders").await, orders);
        assert_eq!(bench.status("GET", "/images/5120/7.gif", "").await, 200);
    });
}

#[test]
fn the_tables_hold_what_the_scale_says() {
    for_each_database(async |kind| {
        let Some(bench) = Bench::open(kind, Locking::Application).await else {
            return;
        };
        for (table, rows) in [
            ("country", 92),
            ("item", 200),
            ("author", 50),
            ("customer", 300),
            ("address", 600),
            ("orders", 270),
            ("cc_xacts", 270),
            ("shopping_cart", 0),
        ] {
            assert_eq!(
                bench.number(&format!("SELECT COUNT(*) FROM {table}")).await,
                rows,
                "{table}"
            );
        }
        let per_order = "SELECT COUNT(*) FROM (SELECT ol_o_id FROM order_line GROUP BY ol_o_id \
            HAVING COUNT(*) BETWEEN 1 AND 5) AS lines_of";
        assert_eq!(bench.number(per_order).await, 270);
        let orphans =
            "SELECT COUNT(*) FROM order_line WHERE ol_i_id NOT IN (SELECT i_id FROM item)";
        assert_eq!(bench.number(orphans).await, 0);
        let named = "SELECT COUNT(*) FROM customer WHERE c_uname = 'RIBABA' AND c_id = 300";
        assert_eq!(bench.number(named).await, 1);
    });
}

fn hidden(page: &str, name: &str) -> i64 {
    let mark = format!("name=\"{name}\" value=\"");
    let rest = page
        .split(&mark)
        .nth(1)
        .unwrap_or_else(|| panic!("no {name}: {page}"));
    rest.split('"').next().unwrap().parse().unwrap()
}

fn digsyl(number: i64) -> String {
    let syllables = ["BA", "OG", "AL", "RI", "RE", "SE", "AT", "UL", "IN", "NG"];
    let digits = number.to_string();
    digits
        .bytes()
        .map(|digit| syllables[usize::from(digit - b'0')])
        .collect()
}
