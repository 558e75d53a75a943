//! `write_through!(Wrapper<S>)`: writes pass a wrapper unchanged to the stream in its field `stream`. For wrappers
//! that look only at what is read.

/// Implements [`AsyncWrite`](tokio::io::AsyncWrite) for the wrapper; see the module's text.
macro_rules! write_through {
    ($wrapper:ident$(<$stream:ident $(, $other:ident)*>)?) => {
        impl$(<$stream: tokio::io::AsyncWrite + Unpin $(, $other: Unpin)*>)? tokio::io::AsyncWrite
            for $wrapper$(<$stream $(, $other)*>)?
        {
            fn poll_write(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                bytes: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.stream).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                slices: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.stream).poll_write_vectored(context, slices)
            }

            fn is_write_vectored(&self) -> bool {
                self.stream.is_write_vectored()
            }

            fn poll_flush(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.stream).poll_flush(context)
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.stream).poll_shutdown(context)
            }
        }
    };
}

pub(crate) use write_through;
