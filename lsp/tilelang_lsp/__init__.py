"""What an editor shows about kernels while they are typed: `tilelang lsp`."""
