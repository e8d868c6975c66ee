# Files are made and written until all are there.
set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $filesize=16k
set $iosize=1m
set $nthreads=16
set mode quit firstdone
define fileset name=many,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth

define process name=worker
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop createfile name=create-new,filesetname=many,fd=1
    flowop writewholefile name=write-new,fd=1,iosize=$iosize
    flowop closefile name=close-new,fd=1
  }
}
run
