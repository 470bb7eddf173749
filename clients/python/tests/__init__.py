"""Tests against real daemons. test/clients starts them and says where they are."""
