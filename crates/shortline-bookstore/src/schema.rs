//! The tables of TPC-W (clause 1.4), with the indexes of its published implementations.
//!
//! Departures: money is in whole cents and a discount in whole percent, so that both databases
//! compute the same. An image is the number of its item and its size in bytes (see `images`).

use crate::store::Kind;

/// All tables. A table comes after those it refers to.
pub(crate) const TABLES: [Table; 10] = [
    Table {
        name: "country",
        id: Some("co_id"),
        columns: &[
            ("co_id", "INT NOT NULL"),
            ("co_name", "VARCHAR(50) NOT NULL"),
            ("co_exchange", "VARCHAR(20) NOT NULL"),
            ("co_currency", "VARCHAR(18) NOT NULL"),
        ],
        key: "co_id",
        indexes: &["co_name"],
    },
    Table {
        name: "address",
        id: Some("addr_id"),
        columns: &[
            ("addr_id", "INT NOT NULL"),
            ("addr_street1", "VARCHAR(40) NOT NULL"),
            ("addr_street2", "VARCHAR(40) NOT NULL"),
            ("addr_city", "VARCHAR(30) NOT NULL"),
            ("addr_state", "VARCHAR(20) NOT NULL"),
            ("addr_zip", "VARCHAR(10) NOT NULL"),
            ("addr_co_id", "INT NOT NULL"),
        ],
        key: "addr_id",
        indexes: &["addr_zip"],
    },
    Table {
        name: "customer",
        id: Some("c_id"),
        columns: &[
            ("c_id", "INT NOT NULL"),
            ("c_uname", "VARCHAR(20)"),
            ("c_passwd", "VARCHAR(20)"),
            ("c_fname", "VARCHAR(17) NOT NULL"),
            ("c_lname", "VARCHAR(17) NOT NULL"),
            ("c_addr_id", "INT NOT NULL"),
            ("c_phone", "VARCHAR(18) NOT NULL"),
            ("c_email", "VARCHAR(50) NOT NULL"),
            ("c_since", "DATE NOT NULL"),
            ("c_last_visit", "DATE NOT NULL"),
            ("c_login", "TIMESTAMP NULL"),
            ("c_expiration", "TIMESTAMP NULL"),
            ("c_discount", "SMALLINT NOT NULL"),
            ("c_balance", "INT NOT NULL"),
            ("c_ytd_pmt", "INT NOT NULL"),
            ("c_birthdate", "DATE NOT NULL"),
            ("c_data", "VARCHAR(500) NOT NULL"),
        ],
        key: "c_id",
        indexes: &["c_uname"],
    },
    Table {
        name: "author",
        id: Some("a_id"),
        columns: &[
            ("a_id", "INT NOT NULL"),
            ("a_fname", "VARCHAR(20) NOT NULL"),
            ("a_lname", "VARCHAR(20) NOT NULL"),
            ("a_mname", "VARCHAR(20) NOT NULL"),
            ("a_dob", "DATE NOT NULL"),
            ("a_bio", "VARCHAR(500) NOT NULL"),
        ],
        key: "a_id",
        indexes: &["a_lname"],
    },
    Table {
        name: "item",
        id: Some("i_id"),
        columns: &[
            ("i_id", "INT NOT NULL"),
            ("i_title", "VARCHAR(60) NOT NULL"),
            ("i_a_id", "INT NOT NULL"),
            ("i_pub_date", "DATE NOT NULL"),
            ("i_publisher", "VARCHAR(60) NOT NULL"),
            ("i_subject", "VARCHAR(60) NOT NULL"),
            ("i_desc", "VARCHAR(500) NOT NULL"),
            ("i_related1", "INT NOT NULL"),
            ("i_related2", "INT NOT NULL"),
            ("i_related3", "INT NOT NULL"),
            ("i_related4", "INT NOT NULL"),
            ("i_related5", "INT NOT NULL"),
            ("i_thumbnail", "INT NOT NULL"),
            ("i_image", "INT NOT NULL"),
            ("i_srp", "INT NOT NULL"),
            ("i_cost", "INT NOT NULL"),
            ("i_avail", "DATE NOT NULL"),
            ("i_stock", "INT NOT NULL"),
            ("i_isbn", "CHAR(13) NOT NULL"),
            ("i_page", "INT NOT NULL"),
            ("i_backing", "VARCHAR(15) NOT NULL"),
            ("i_dimensions", "VARCHAR(25) NOT NULL"),
        ],
        key: "i_id",
        indexes: &["i_title", "i_subject", "i_a_id"],
    },
    Table {
        name: "orders",
        id: Some("o_id"),
        columns: &[
            ("o_id", "INT NOT NULL"),
            ("o_c_id", "INT NOT NULL"),
            ("o_date", "TIMESTAMP NULL"),
            ("o_sub_total", "INT NOT NULL"),
            ("o_tax", "INT NOT NULL"),
            ("o_total", "INT NOT NULL"),
            ("o_ship_type", "VARCHAR(10) NOT NULL"),
            ("o_ship_date", "TIMESTAMP NULL"),
            ("o_bill_addr_id", "INT NOT NULL"),
            ("o_ship_addr_id", "INT NOT NULL"),
            ("o_status", "VARCHAR(16) NOT NULL"),
        ],
        key: "o_id",
        indexes: &["o_c_id"],
    },
    Table {
        name: "order_line",
        id: None,
        columns: &[
            ("ol_o_id", "INT NOT NULL"),
            ("ol_id", "INT NOT NULL"),
            ("ol_i_id", "INT NOT NULL"),
            ("ol_qty", "INT NOT NULL"),
            ("ol_discount", "SMALLINT NOT NULL"),
            ("ol_comments", "VARCHAR(100) NOT NULL"),
        ],
        key: "ol_o_id, ol_id",
        indexes: &["ol_i_id"],
    },
    Table {
        name: "cc_xacts",
        id: None,
        columns: &[
            ("cx_o_id", "INT NOT NULL"),
            ("cx_type", "VARCHAR(10) NOT NULL"),
            ("cx_num", "VARCHAR(16) NOT NULL"),
            ("cx_name", "VARCHAR(31) NOT NULL"),
            ("cx_expire", "DATE NOT NULL"),
            ("cx_auth_id", "CHAR(15) NOT NULL"),
            ("cx_xact_amt", "INT NOT NULL"),
            ("cx_xact_date", "TIMESTAMP NULL"),
            ("cx_co_id", "INT NOT NULL"),
        ],
        key: "cx_o_id",
        indexes: &[],
    },
    Table {
        name: "shopping_cart",
        id: Some("sc_id"),
        columns: &[("sc_id", "INT NOT NULL"), ("sc_time", "TIMESTAMP NULL")],
        key: "sc_id",
        indexes: &[],
    },
    Table {
        name: "shopping_cart_line",
        id: None,
        columns: &[
            ("scl_sc_id", "INT NOT NULL"),
            ("scl_i_id", "INT NOT NULL"),
            ("scl_qty", "INT NOT NULL"),
        ],
        key: "scl_sc_id, scl_i_id",
        indexes: &[],
    },
];

/// A table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub name: &'static str,
    /// The column that the database numbers, if there is one.
    pub id: Option<&'static str>,
    /// Names and types.
    pub columns: &'static [(&'static str, &'static str)],
    pub key: &'static str,
    /// Columns that have their own index.
    pub indexes: &'static [&'static str],
}

impl Table {
    /// The names of its columns, separated by commas.
    pub fn column_list(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The statement that drops it.
    pub fn drop(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.name)
    }

    /// The statement that creates it, without indexes. MariaDB's key is included, because its
    /// tables are kept in key order.
    pub fn create(&self, kind: Kind) -> String {
        let mut parts: Vec<String> = self
            .columns
            .iter()
            .map(|(name, what)| {
                let generated = match kind {
                    Kind::Postgres => " GENERATED BY DEFAULT AS IDENTITY",
                    Kind::MariaDb => " AUTO_INCREMENT",
                };
                let generated = if self.id == Some(name) { generated } else { "" };
                format!("{name} {what}{generated}")
            })
            .collect();
        if kind == Kind::MariaDb {
            parts.push(format!("PRIMARY KEY ({})", self.key));
        }
        let engine = match kind {
            Kind::Postgres => "",
            Kind::MariaDb => " ENGINE=InnoDB CHARACTER SET latin1",
        };
        format!("CREATE TABLE {} ({}){engine}", self.name, parts.join(", "))
    }

    /// The statements that follow once it is filled: keys, indexes, and the next number of the
    /// database's own numbering.
    pub fn complete(&self, kind: Kind, rows: u64) -> Vec<String> {
        let name = self.name;
        let mut statements = Vec::new();
        if kind == Kind::Postgres {
            statements.push(format!("ALTER TABLE {name} ADD PRIMARY KEY ({})", self.key));
        }
        for column in self.indexes {
            statements.push(format!("CREATE INDEX {name}_{column} ON {name} ({column})"));
        }
        if let Some(id) = self.id {
            let next = rows + 1;
            statements.push(match kind {
                Kind::Postgres => {
                    format!("ALTER TABLE {name} ALTER COLUMN {id} RESTART WITH {next}")
                }
                Kind::MariaDb => format!("ALTER TABLE {name} AUTO_INCREMENT = {next}"),
            });
        }
        statements.push(match kind {
            // Otherwise the database would do it by itself within minutes, in the middle of a run.
            Kind::Postgres => format!("VACUUM (ANALYZE) {name}"),
            Kind::MariaDb => format!("ANALYZE TABLE {name}"),
        });
        statements
    }
}
