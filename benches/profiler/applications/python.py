"""mpi4py: the interpreter links no MPI, the module loads it privately: python.py FILE"""
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
out = bytearray([rank + 1] * 5000)
file.Write_at_all(rank * 5000, out)
file.Set_view(rank * 320, MPI.DOUBLE, MPI.DOUBLE)  # derived types of mpi4py 4 end MPICH 4.0
file.Iwrite(bytearray(320)).Wait()
file.Set_view(0)
world.Barrier()
into = bytearray(5000)
file.Read_at(((rank + 1) % size) * 5000, into)
expected = (rank + 1) % size + 1
wrong = sum(byte not in (expected, 0) for byte in into)
file.Close()
print(f"rank {rank}: {wrong} wrong", flush=True)
