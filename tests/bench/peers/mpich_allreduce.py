import mpi_allreduce

mpi_allreduce.run("mpich")
