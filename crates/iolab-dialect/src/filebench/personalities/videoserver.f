# Video server: readers stream active videos at a rate, a writer replaces passive ones.
set $dir=/tmp
set $eventrate=96
set $filesize=10g
set $nthreads=48
set $numactivevids=32
set $numpassivevids=194
set $readiosize=256k
set $writeiosize=1m
set $repintval=10
set $runtime=60

eventgen rate=$eventrate

define fileset name=active,path=$dir,size=$filesize,entries=$numactivevids,dirwidth=4,prealloc,paralloc
define fileset name=passive,path=$dir,size=$filesize,entries=$numpassivevids,dirwidth=20,prealloc=50,paralloc

define process name=ingest
{
  thread name=writer,memsize=10m
  {
    flowop deletefile name=delete-old,filesetname=passive
    flowop createfile name=create-new,filesetname=passive,fd=1
    flowop writewholefile name=write-new,iosize=$writeiosize,fd=1,srcfd=1
    flowop closefile name=close-new,fd=1
    flowop delay name=pause,value=$repintval
  }
}
define process name=streaming
{
  thread name=reader,memsize=10m,instances=$nthreads
  {
    flowop read name=stream,filesetname=active,iosize=$readiosize
    flowop bwlimit name=limit-mib,target=stream
  }
}
run $runtime
